#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "actors/base/error.hpp"
#include "jobs/report/metrics_file.hpp"
#include "jobs/report/progress.hpp"
#include "jobs/report/tensorboard.hpp"

namespace troupe::jobs::grpo {

/// What people see of a run while it goes: metrics.jsonl, TensorBoard events, the progress bar. Adds how long each phase took (timing_s/…),
/// which is in no message. Used by the director's thread alone.
class Reporter {
 public:
  /// Cuts metrics.jsonl back to `last_step`. Errors: io.
  static Result<Reporter> open(const std::filesystem::path& run, std::uint64_t last_step, std::uint64_t steps, Progress& progress);

  void phase_ended(std::string_view phase);
  Result<void> report(std::uint64_t step, std::map<std::string, double> metrics);

 private:
  Reporter(MetricsFile metrics, EventFile events, std::uint64_t steps, Progress& progress);

  MetricsFile metrics_;
  EventFile events_;
  std::uint64_t steps_;
  Progress* progress_;
  double step_began_s_;
  double phase_began_s_;
  std::map<std::string, double> phases_;
};

}  // namespace troupe::jobs::grpo
