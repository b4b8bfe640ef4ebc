#pragma once

#include <filesystem>

namespace troupe::jobs {

/// Where things lie in a RUN.
namespace run_paths {
inline std::filesystem::path record(const std::filesystem::path& run) { return run / "run.h5"; }
inline std::filesystem::path metrics(const std::filesystem::path& run) { return run / "metrics.jsonl"; }
inline std::filesystem::path summary(const std::filesystem::path& run) { return run / "summary.json"; }
inline std::filesystem::path job_file(const std::filesystem::path& run) { return run / "job.toml"; }
inline std::filesystem::path checkpoints(const std::filesystem::path& run) { return run / "checkpoints"; }
inline std::filesystem::path lock(const std::filesystem::path& run) { return run / "run.lock"; }
/// The model that the run started from, when it is kept in the run.
inline std::filesystem::path input_model(const std::filesystem::path& run) { return run / "inputs" / "model"; }
/// Where `sft` puts its model unless told otherwise.
inline std::filesystem::path trained_model(const std::filesystem::path& run) { return run / "model"; }
}  // namespace run_paths

/// A folder that a job wrote: it has run.h5, or a job file and metrics.
inline bool is_run_folder(const std::filesystem::path& folder) {
  std::error_code code;
  return std::filesystem::exists(run_paths::record(folder), code) ||
         (std::filesystem::exists(run_paths::job_file(folder), code) && std::filesystem::exists(run_paths::metrics(folder), code));
}

}  // namespace troupe::jobs
