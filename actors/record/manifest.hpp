#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/base/error.hpp"
#include "actors/base/fields.hpp"
#include "actors/record/journal_tables.hpp"

// What run.h5 holds: a value tree of these, by these names. Paths are relative to the run's folder.
namespace troupe::record {

inline constexpr std::uint32_t kManifestFormat = 1;

struct Fact {
  std::string name, value;
  TROUPE_FIELDS(name, value)
};

/// How one process of an attempt ended, as far as its journal says.
struct ExitEntry {
  std::uint32_t rank = 0;
  bool said = false;  ///< false: killed, and the journal was read up to its last whole entry
  std::uint16_t code = 0;
  std::string reason;
  std::uint64_t cut_bytes = 0;
  TROUPE_FIELDS(rank, said, code, reason, cut_bytes)
};

/// One start of the job in this folder, from a checkpoint on. Numbered from 1.
struct AttemptEntry {
  std::uint32_t number = 0;
  std::uint64_t start_step = 0;  ///< of the checkpoint that it began from
  std::uint32_t ranks = 0;
  bool sealed = false;
  std::uint64_t last_step = 0;  ///< the last that was marked done; past the next attempt's start it is a dead branch
  std::vector<ExitEntry> exits;
  TROUPE_FIELDS(number, start_step, ranks, sealed, last_step, exits)
};

struct CheckpointEntry {
  std::uint64_t step = 0;
  std::string file;
  std::string weights_digest;
  std::uint32_t attempt = 0;
  TROUPE_FIELDS(step, file, weights_digest, attempt)
};

struct FileEntry {
  std::string path;
  std::uint64_t bytes = 0;
  std::string digest;  ///< as xxh128sum prints it
  TROUPE_FIELDS(path, bytes, digest)
};

struct ActorEntry {
  std::string name, class_name;
  std::uint64_t id = 0, deliveries = 0;
  std::uint32_t rank = 0;  ///< where it was spawned last
  TROUPE_FIELDS(name, class_name, id, deliveries, rank)
};

struct MessageEntry {
  std::string type;
  std::uint64_t count = 0, bytes = 0;  ///< of content, not of the record
  TROUPE_FIELDS(type, count, bytes)
};

struct Manifest {
  std::uint32_t format = kManifestFormat;
  std::string run_id, configuration, build_id, contract, level;
  std::vector<Fact> facts;
  std::vector<AttemptEntry> attempts;
  std::vector<CheckpointEntry> checkpoints;  ///< ascending by step
  std::vector<FileEntry> files;              ///< ascending by path; all of the record but run.h5 and unsealed journals
  std::vector<ActorEntry> actors;            ///< of sealed attempts, ascending by name
  std::vector<MessageEntry> messages;        ///< of sealed attempts, ascending by type
  std::uint64_t journal_bytes = 0;           ///< of sealed attempts
  bool finished = false;
  std::string summary;
  TROUPE_FIELDS(format, run_id, configuration, build_id, contract, level, facts, attempts, checkpoints, files, actors, messages,
                journal_bytes, finished, summary)

  const CheckpointEntry* checkpoint(std::uint64_t step) const;
  const FileEntry* file(std::string_view path) const;
};

/// Errors: io, corrupt; unsupported for another format.
Result<Manifest> read_manifest(const std::filesystem::path& folder);
/// With an external link events/ATTEMPT-RANK to every sealed file.
Result<void> write_manifest(const std::filesystem::path& folder, const Manifest& manifest);

/// Adds what a journal says to the manifest's actors, messages and bytes.
void count_events(Manifest& manifest, const JournalTables& tables);
/// How a process ended, by its journal.
ExitEntry exit_of(const JournalTables& tables, std::uint32_t rank);

/// journals/0001-0002.journal, record/0001-0002.h5, checkpoints/step-000012.h5
std::string journal_path(std::uint32_t attempt, std::uint32_t rank);
std::string sealed_path(std::uint32_t attempt, std::uint32_t rank);
std::string checkpoint_path(std::uint64_t step);

}  // namespace troupe::record
