#include "jobs/job.hpp"

namespace troupe::jobs {

Result<int> run_job(const JobConfig& config, JobContext& context) {
  if (const auto* sft = std::get_if<SftConfig>(&config)) return run_sft(*sft, context);
  return run_grpo(std::get<GrpoConfig>(config), context);
}

}  // namespace troupe::jobs
