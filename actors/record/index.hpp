#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/envelope.hpp"

namespace troupe::record {

/// One thing that happened: a delivery, or a gang's command, which is one delivery at all its members.
/// Names of types and actors are indices into Index::types() and Index::actors().
struct Event {
  std::uint64_t n = 0;
  std::uint32_t segment = 0;          ///< of History::line
  std::uint64_t step = 0;             ///< the training step
  std::uint64_t level = 0;            ///< L: one more than what came before it
  std::uint32_t type = 0;
  EnvelopeKind kind = EnvelopeKind::tell;
  Origin origin;                      ///< of member 0's message
  std::uint32_t actor = 0;            ///< a gang's member 0
  std::uint64_t number = 0;           ///< of the actor's deliveries in the segment
  std::uint32_t members = 1;
  std::uint64_t digest = 0, bytes = 0;
  std::int64_t time_us = 0;           ///< since the run's start, by the clock of its process
  std::uint64_t duration_us = 0;      ///< the longest of its members; 0: under 100 µs
};

struct IndexedActor {
  ActorId id{};
  std::string name, class_name, gang;
  Rank rank{};                        ///< the last that it lived on
  std::uint64_t events = 0;
};

/// What to look for; empty fields match everything.
struct EventFilter {
  std::optional<std::uint32_t> type, actor, sender;  ///< sender: of Index::actors(); kOutsideSender for the outside
  std::optional<std::uint64_t> step;
};
inline constexpr std::uint32_t kOutsideSender = 0xFFFFFFFF;

/// Where an actor stands at a position.
struct ActorPlace {
  std::uint64_t deliveries = 0;  ///< it has taken in the segment
  std::uint64_t sent = 0;        ///< messages, by them
};

struct IndexedSegment {
  std::uint32_t attempt = 0;
  std::uint64_t start_step = 0;
  std::uint64_t first = 0, last = 0;  ///< positions [first, last)
  bool whole = false;                 ///< else its last moments may be missing
};

/// A supervision event: an actor stopped or was restarted after it had taken `number` deliveries.
struct IndexedStop {
  std::uint64_t n = 0;               ///< the position after which it happened
  std::uint32_t actor = 0;
  bool is_restart = false;
  Error reason;
};

/// A run's events in the order of positions: (segment, training step, L, name, number). Answers come from a mapped file; nothing in the run is
/// written or locked. A run that is killed or live is indexed up to its last flush.
class Index {
 public:
  using Progress = std::function<void(double done)>;
  /// Errors: those of the record; io.
  static Result<Index> open(const std::filesystem::path& run, const Progress& progress = {});
  ~Index();
  Index(Index&&) noexcept;
  Index& operator=(Index&&) noexcept;

  std::uint64_t count() const;
  Event event(std::uint64_t n) const;
  /// The deliveries of an event: actors with their delivery numbers, member 0 first.
  std::vector<std::pair<std::uint32_t, std::uint64_t>> members(std::uint64_t n) const;

  std::span<const IndexedActor> actors() const;          ///< by name
  std::span<const std::string> types() const;
  std::span<const IndexedSegment> segments() const;
  std::span<const IndexedStop> stops() const;            ///< by position
  std::optional<std::uint32_t> find_actor(std::string_view name) const;
  std::optional<std::uint32_t> find_actor(ActorId id) const;
  std::optional<std::uint32_t> find_type(std::string_view name) const;  ///< with or without its namespaces, when only one fits

  std::optional<std::uint64_t> position_of(std::uint32_t segment, std::uint32_t actor, std::uint64_t number) const;
  std::optional<std::uint64_t> first_of_step(std::uint64_t step) const;  ///< the first position whose training step is at least `step`
  std::uint64_t last_step() const;

  /// The event that sent, and the one that took, the message of an origin in a segment.
  std::optional<std::uint64_t> sent_at(std::uint32_t segment, const Origin& origin) const;
  std::optional<std::uint64_t> taken_at(std::uint32_t segment, const Origin& origin, EnvelopeKind kind) const;
  std::optional<std::uint64_t> cause(std::uint64_t n) const;    ///< the event that sent its message; nothing for the outside
  std::vector<std::uint64_t> effects(std::uint64_t n) const;    ///< the deliveries of what it sent, ascending
  std::vector<std::uint64_t> chain(std::uint64_t n) const;      ///< n, its cause, its cause's, … back to the outside

  std::optional<std::uint64_t> find_next(const EventFilter& filter, std::uint64_t from) const;         ///< at or after `from`
  std::optional<std::uint64_t> find_previous(const EventFilter& filter, std::uint64_t before) const;   ///< before `before`
  std::uint64_t count(const EventFilter& filter) const;

  /// An actor's place at position n, within n's segment (the end counts as the last segment's).
  ActorPlace place_of(std::uint32_t actor, std::uint64_t n) const;

 private:
  struct State;
  explicit Index(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe::record
