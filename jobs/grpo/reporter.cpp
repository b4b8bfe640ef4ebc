#include "jobs/grpo/reporter.hpp"

#include "jobs/report/wall_clock.hpp"

namespace troupe::jobs::grpo {

Result<Reporter> Reporter::open(const std::filesystem::path& run, std::uint64_t last_step, std::uint64_t steps, Progress& progress) {
  Result<MetricsFile> metrics = MetricsFile::open(run / "metrics.jsonl", last_step);
  if (!metrics) return metrics.error();
  Result<EventFile> events = EventFile::create(run, last_step + 1);
  if (!events) return events.error();
  return Reporter(std::move(*metrics), std::move(*events), steps, progress);
}

Reporter::Reporter(MetricsFile metrics, EventFile events, std::uint64_t steps, Progress& progress)
    : metrics_(std::move(metrics)), events_(std::move(events)), steps_(steps), progress_(&progress), step_began_s_(monotonic_seconds()), phase_began_s_(step_began_s_) {}

void Reporter::phase_ended(std::string_view phase) {
  const double now_s = monotonic_seconds();
  phases_["timing_s/" + std::string(phase)] += now_s - phase_began_s_;
  phase_began_s_ = now_s;
}

Result<void> Reporter::report(std::uint64_t step, std::map<std::string, double> metrics) {
  const double now_s = monotonic_seconds();
  const double step_s = now_s - step_began_s_;
  step_began_s_ = phase_began_s_ = now_s;
  metrics.merge(phases_);
  phases_.clear();
  const double tokens = metrics["perf/total_num_tokens"];
  metrics["timing_s/step"] = metrics["perf/time_per_step"] = step_s;
  metrics["perf/throughput"] = step_s > 0 ? tokens / step_s : 0;
  if (Result<void> written = metrics_.append(step, metrics); !written) return written;
  if (Result<void> written = events_.append(step, metrics); !written) return written;
  StepReport line{.step = step, .steps = steps_, .tokens = static_cast<std::uint64_t>(tokens)};
  if (const auto reward = metrics.find("critic/score/mean"); reward != metrics.end()) line.reward = reward->second;
  for (const auto& [name, value] : metrics) {
    if (name.starts_with("val-core/")) line.accuracy = value;
  }
  progress_->step(line);
  return {};
}

}  // namespace troupe::jobs::grpo
