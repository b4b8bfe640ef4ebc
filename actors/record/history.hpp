#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/delivery.hpp"
#include "actors/record/journal_tables.hpp"
#include "actors/record/manifest.hpp"

namespace troupe::record {

struct RecordedDelivery {
  Origin origin;
  EnvelopeKind kind = EnvelopeKind::tell;
  std::uint32_t type = 0;  ///< of Segment::names
  std::uint64_t digest = 0, bytes = 0;
  std::uint64_t fields_at = 0, fields_count = 0;  ///< of ActorHistory::fields
  std::uint32_t sends = 0;   ///< what the actor sent since its delivery before
  std::int64_t time_us = 0;  ///< since its process began to record
};

struct RecordedDigest {
  std::uint64_t number = 0;  ///< of the delivery that it belongs to
  std::uint32_t name = 0;    ///< of Segment::names
  std::uint64_t digest = 0, bytes = 0;
  std::uint64_t fields_at = 0, fields_count = 0;
};

struct RecordedTime {
  std::uint64_t number = 0;
  Time time{};
};

struct RecordedStep {
  std::uint64_t number = 0;
  std::uint64_t step = 0;  ///< that the delivery begins
};

struct RecordedRun {
  std::uint64_t number = 0;
  std::uint64_t us = 0;    ///< that the handler took; only those of 100 µs and more
};

/// After `number` deliveries.
struct RecordedStop {
  std::uint64_t number = 0;
  bool is_restart = false;
  Error reason;
};

/// What happened to one actor in a segment; everything ascends by delivery number, which is the index of `deliveries`.
struct ActorHistory {
  ActorId id{};
  std::string name, class_name, gang;  ///< empty when its spawning was lost
  Rank rank{};
  std::vector<RecordedDelivery> deliveries;
  std::vector<RecordedTime> clocks;
  std::vector<RecordedDigest> notes, states;
  std::vector<RecordedStep> begins;
  std::vector<RecordedRun> ran;
  std::vector<RecordedStop> stops;
  std::vector<std::uint32_t> fields;

  std::span<const std::uint32_t> fields_of(const RecordedDelivery& of) const {
    return std::span(fields).subspan(of.fields_at, of.fields_count);
  }
  std::span<const std::uint32_t> fields_of(const RecordedDigest& of) const {
    return std::span(fields).subspan(of.fields_at, of.fields_count);
  }
};

/// A message of the job's main (or of level full): its delivery, and its content.
struct RecordedPayload {
  ActorId to{};
  std::uint64_t number = 0;
  Origin origin;
  EnvelopeKind kind = EnvelopeKind::tell;
  TypeId type{};
  std::string type_name;
  Bytes payload;  ///< in wire form
};

/// An attempt from its start checkpoint to the next attempt's, or to its end. Where a kill ended a journal, each actor's last delivery is
/// left out: what its handler read and noted may be lost.
struct Segment {
  std::uint32_t attempt = 0;
  std::uint64_t start_step = 0, end_step = 0;
  /// The next segment begins from the checkpoint at its end. What the handlers that were running then read and noted after the mark is in
  /// here if it was recorded, and may be lost.
  bool ends_at_checkpoint = false;
  bool whole = false;  ///< every rank recorded to the segment's end; else the last moments before a kill may be missing
  std::vector<std::string> names;
  std::map<ActorId, ActorHistory> actors;
  std::vector<RecordedPayload> outside;   ///< ascending by sequence
  std::vector<RecordedPayload> payloads;  ///< level full: the others, by actor and number

  const ActorHistory* find(ActorId actor) const;
  std::string name_of(ActorId actor) const;  ///< "outside", the actor's name, or its id in hexadecimal
  std::uint64_t deliveries() const;
};

/// What a killed attempt did past the checkpoint that the next began from. read_attempt shows it.
struct DeadBranch {
  std::uint32_t attempt = 0;
  std::uint64_t from_step = 0, to_step = 0;  ///< steps from + 1 … to were done, perhaps half of the next
};

/// A run's record in memory: the line of segments that leads to its last weights. Sealed, live or killed; nothing is locked or written.
struct History {
  Manifest manifest;
  std::vector<Segment> line;
  std::vector<DeadBranch> dead;
};

/// The line that leads to the end of `attempt`, or of the last one. Errors: io; corrupt (also for a delivery number twice or missing
/// in a whole segment); bad_input for an attempt that there is not.
Result<History> read_history(const std::filesystem::path& folder, std::optional<std::uint32_t> attempt = std::nullopt);

/// One attempt whole, its dead branch included.
Result<Segment> read_attempt(const std::filesystem::path& folder, const Manifest& manifest, std::uint32_t attempt);

/// The tables of every rank of an attempt, from sealed files or journals. A rank without either is left out.
Result<std::vector<JournalTables>> read_tables(const std::filesystem::path& folder, const Manifest& manifest, std::uint32_t attempt);

}  // namespace troupe::record
