#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "actors/base/error.hpp"
#include "jobs/report/json.hpp"

namespace troupe::jobs {

/// What a job leaves when it ends: summary.json.
struct Summary {
  std::string job;
  std::string state = "done";  ///< or "failed"
  std::uint64_t steps = 0;
  std::uint64_t seed = 0;
  std::uint32_t ranks = 1;
  double wall_s = 0;
  std::string digest;          ///< the final weights', 32 hex digits; empty when there are none
  std::uint64_t messages = 0;
  Metrics metrics;
};

std::string summary_json(const Summary& summary);
/// Written aside and renamed.
Result<void> write_summary(const std::filesystem::path& run, const Summary& summary);
/// Nothing when the job has not ended. Errors: corrupt.
Result<std::optional<Summary>> read_summary(const std::filesystem::path& run);

}  // namespace troupe::jobs
