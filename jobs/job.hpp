#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/base/error.hpp"
#include "jobs/config/config.hpp"
#include "jobs/run_folder/run_folder.hpp"
#include "jobs/run_folder/summary_file.hpp"
#include "scheduler/plan.hpp"
#include "transport/world.hpp"

namespace troupe::jobs {

class Progress;
class StopSignals;

/// What a job runs in. Every rank has one.
struct JobContext {
  std::filesystem::path run;                   ///< the RUN folder, opened and locked by rank 0
  RunState state = RunState::fresh;            ///< fresh or resumed, on every rank
  transport::World& world;
  Progress& progress;                          ///< to be told of each step; silent on ranks other than 0
  StopSignals& stop;                           ///< SIGINT, SIGTERM, SIGUSR1

  std::uint32_t ranks() const { return world.size(); }
  bool is_rank_zero() const { return world.rank() == Rank{0}; }
};

/// How a job ended, on every rank. summary: on rank 0 of a job that is done; its job, state, seed, ranks and wall_s are filled in by the caller.
struct JobEnd {
  int code = 0;  ///< 0 done, 1 failed, 130 or 143 stopped after a checkpoint
  std::optional<Summary> summary = {};
};

/// Errors: bad_input, unsupported, locked, resource_short when it was refused before the first step with nothing written (exit code 2, and
/// a fresh folder is taken back); others when it failed later (1).
Result<JobEnd> run_sft(const SftConfig& config, JobContext& context);
Result<JobEnd> run_grpo(const GrpoConfig& config, JobContext& context);

/// Opens the folder on rank 0, runs the job, writes summary.json. A finished run gives 0 and changes nothing. Errors as above.
Result<int> run_job(const JobConfig& config, const std::filesystem::path& run, transport::World& world, Progress& progress, StopSignals& stop);

/// What can be refused before a run folder is made: files that are not there, a model that does not fit the split.
Result<void> check_job(const JobConfig& config);

/// The actors of a job, to be placed.
Result<std::vector<scheduler::Request>> requests_of(const JobConfig& config);

struct ReplayRequest {
  std::filesystem::path run;
  transport::World& world;
  bool json = false;
};
/// 0 when all is equal, 1 at a divergence. Prints its findings on rank 0. Errors (2): the run cannot be read.
Result<int> replay_run(const ReplayRequest& request);

/// Prints what happened. Errors (2): the run cannot be read.
Result<int> inspect_run(const std::filesystem::path& run, bool json);
/// Seals the record of a killed run. Errors: locked while the run lives; bad_input.
Result<int> recover_run(const std::filesystem::path& run);

}  // namespace troupe::jobs
