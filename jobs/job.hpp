#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/base/error.hpp"
#include "jobs/config/config.hpp"
#include "scheduler/plan.hpp"
#include "transport/mpi/mpi_world.hpp"

namespace troupe::jobs {

class Progress;
class StopSignals;

/// What a job runs in. Every rank has one.
struct JobContext {
  std::filesystem::path run;                         ///< the RUN folder; rank 0 opens and writes it
  std::shared_ptr<transport::MpiWorld> world;        ///< null: one rank, without MPI
  Progress& progress;                                ///< to be told of each step, on rank 0
  StopSignals& stop;                                 ///< SIGINT, SIGTERM, SIGUSR1
};

/// An exit code: 0 done, 1 failed, 130 or 143 stopped after a checkpoint. Errors: bad_input, unsupported, locked, resource_short and
/// anything else that was found before the first step (exit code 2), with nothing written.
Result<int> run_sft(const SftConfig& config, JobContext& context);
Result<int> run_grpo(const GrpoConfig& config, JobContext& context);
Result<int> run_job(const JobConfig& config, JobContext& context);

/// What can be refused before a run folder is made: files that are not there, a model that does not fit the split.
Result<void> check_job(const JobConfig& config);

/// The actors of a job, to be placed.
Result<std::vector<scheduler::Request>> requests_of(const JobConfig& config);

struct ReplayRequest {
  std::filesystem::path run;
  std::shared_ptr<transport::MpiWorld> world;  ///< null: one rank
  bool json = false;
};
/// 0 when all is equal, 1 at a divergence. Prints its findings on rank 0. Errors (2): the run cannot be read.
Result<int> replay_run(const ReplayRequest& request);

/// Prints what happened. Errors (2): the run cannot be read.
Result<int> inspect_run(const std::filesystem::path& run, bool json);
/// Seals the record of a killed run. Errors: locked while the run lives; bad_input.
Result<int> recover_run(const std::filesystem::path& run);

}  // namespace troupe::jobs
