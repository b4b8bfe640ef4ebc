#include "jobs/debug/recording.hpp"

#include <fmt/format.h>

#include "jobs/job.hpp"
#include "jobs/run_folder/paths.hpp"
#include "jobs/run_folder/run_folder.hpp"
#include "models/numerics/contract.hpp"

namespace troupe::jobs::debug {
namespace {

Result<GrpoConfig> configuration(const std::filesystem::path& run) {
  Result<JobConfig> given = read_job(run_paths::job_file(run));
  if (!given) return given.error();
  Result<JobConfig> opened = opened_config(run, *given);
  if (!opened) return opened.error();
  const auto* config = std::get_if<GrpoConfig>(&*opened);
  if (config == nullptr) return Error{ErrorCode::unsupported, run.string() + ": want a run of actors (grpo), got job = \"" + common(*opened).job + "\""};
  return *config;
}

Result<scheduler::Plan> plan_of(const GrpoConfig& config) {
  Result<scheduler::LocalResources> here = scheduler::find_local_resources();
  if (!here) return here.error();
  Result<std::vector<scheduler::Request>> wanted = requests_of(JobConfig(config));
  if (!wanted) return wanted.error();
  return scheduler::make_plan(scheduler::combine({*here}), std::move(*wanted));
}

}  // namespace

Result<Recording> Recording::open(const std::filesystem::path& run, const record::Index::Progress& progress) {
  std::error_code code;
  if (!std::filesystem::is_directory(run, code)) return Error{ErrorCode::bad_input, run.string() + ": want a run's folder, got none there"};
  Result<GrpoConfig> config = configuration(run);
  if (!config) return config.error();
  Result<record::Index> index = record::Index::open(run, progress);
  if (!index) return index.error();
  Result<record::History> history = record::read_history(run);
  if (!history) return history.error();
  if (history->manifest.contract != models::numerics::contract_label()) {
    return Error{ErrorCode::unsupported, fmt::format("{}: recorded under the numerics contract {}, this build has {}", run.string(), history->manifest.contract, models::numerics::contract_label())};
  }
  if (index->count() == 0) return Error{ErrorCode::bad_input, run.string() + ": want a run that was recorded, got one without a message (record.level = off)"};
  Result<std::unique_ptr<transport::World>> world = transport::World::alone();
  if (!world) return world.error();
  Result<scheduler::Plan> plan = plan_of(*config);
  if (!plan) return plan.error();
  return Recording{run, std::move(*history), std::move(*index), std::move(*config), std::move(*world), std::move(*plan)};
}

}  // namespace troupe::jobs::debug
