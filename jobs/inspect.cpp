#include "actors/record/inspect.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "actors/base/value.hpp"
#include "actors/record/run_record.hpp"
#include "jobs/job.hpp"
#include "jobs/run_folder/run_lock.hpp"

namespace troupe::jobs {

Result<int> inspect_run(const std::filesystem::path& run, bool json) {
  const Result<record::RunSummary> summary = record::inspect(run);
  if (!summary) return summary.error();
  fmt::print("{}\n", json ? record::to_json(to_value(*summary)) : record::to_text(*summary));
  std::fflush(stdout);
  return 0;
}

Result<int> recover_run(const std::filesystem::path& run) {
  const Result<RunLock> lock = RunLock::take(run_paths::lock(run));
  if (!lock) return lock.error();
  const Result<std::uint32_t> sealed = record::recover(run);
  if (!sealed) return sealed.error();
  fmt::print("sealed {} journal{}\n", *sealed, *sealed == 1 ? "" : "s");
  std::fflush(stdout);
  return 0;
}

}  // namespace troupe::jobs
