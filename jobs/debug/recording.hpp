#pragma once

#include <filesystem>
#include <string>

#include "actors/record/history.hpp"
#include "actors/record/index.hpp"
#include "jobs/config/grpo_config.hpp"
#include "scheduler/plan.hpp"
#include "transport/world.hpp"

namespace troupe::jobs::debug {

/// A run as a re-execution needs it. Read once, then shared by every copy of the process.
struct Recording {
  std::filesystem::path run;
  record::History history;
  record::Index index;
  GrpoConfig config;
  std::unique_ptr<transport::World> world;  ///< of this process alone
  scheduler::Plan plan;

  /// Errors: those of the record; unsupported for another numerics contract or for a job without actors.
  static Result<Recording> open(const std::filesystem::path& run, const record::Index::Progress& progress = {});
};

}  // namespace troupe::jobs::debug
