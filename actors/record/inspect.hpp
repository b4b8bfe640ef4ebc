#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "actors/base/value.hpp"
#include "actors/record/manifest.hpp"

namespace troupe::record {

/// What happened in a run, whatever became of it.
struct RunSummary {
  std::string run_id;
  std::string state;  ///< "finished", "stopped" (every process of the last attempt said why it ended), "killed or running", "not begun"
  std::uint32_t ranks = 0;  ///< of the last attempt
  std::uint64_t last_step = 0;
  std::string level, build_id, contract;
  std::vector<Fact> facts;
  std::vector<AttemptEntry> attempts;
  std::vector<CheckpointEntry> checkpoints;
  std::vector<ActorEntry> actors;
  std::vector<MessageEntry> messages;
  std::uint64_t message_count = 0, message_bytes = 0;
  std::uint64_t recorded_bytes = 0;  ///< of the journals as they were written, sealed or not
  double recorded_bytes_per_message = 0;
  TROUPE_FIELDS(run_id, state, ranks, last_step, level, build_id, contract, facts, attempts, checkpoints, actors, messages, message_count,
                message_bytes, recorded_bytes, recorded_bytes_per_message)
};

/// Of a finished, killed or running run: reads only, and takes no lock. Errors: io; corrupt.
Result<RunSummary> inspect(const std::filesystem::path& folder);

/// For a terminal: a line for the run, then its attempts, checkpoints, actors and messages as columns.
std::string to_text(const RunSummary& summary);

/// A tree as JSON: records are objects, lists and arrays are (nested) arrays, nothing is null, and so is a number that is not finite.
std::string to_json(const Value& value);

}  // namespace troupe::record
