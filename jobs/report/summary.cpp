#include "jobs/report/summary.hpp"

#include <fmt/format.h>

#include "jobs/report/metrics_file.hpp"
#include "jobs/report/reward_plot.hpp"
#include "jobs/run_folder/paths.hpp"
#include "jobs/run_folder/summary_file.hpp"

namespace troupe::jobs {
namespace {

// This program as one would type it here.
std::string program() {
  std::error_code code;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", code);
  if (code) return "troupe";
  const auto near = std::filesystem::proximate(self, code).string();
  return code || near.starts_with("..") ? self.string() : near;
}

}  // namespace

Result<std::string> describe_run(const std::filesystem::path& run) {
  auto read = read_summary(run);
  if (!read) return read.error();
  if (!*read) return Error{ErrorCode::bad_input, fmt::format("{}: want a run that has ended, got one without summary.json", run.string())};
  const Summary& summary = **read;
  std::string text;
  const auto curve = [&](const char* metric, const char* title) { return plot(read_metric(run_paths::metrics(run), metric), title); };
  text += summary.job == "sft" ? curve("train/loss", "loss") : curve("critic/rewards/mean", "reward");
  const auto before = summary.metrics.find("val/accuracy_before"), after = summary.metrics.find("val/accuracy_after");
  if (before != summary.metrics.end() && after != summary.metrics.end()) {
    text += fmt::format("accuracy  {:.1f} % before, {:.1f} % after (held out, greedy)\n", 100 * before->second, 100 * after->second);
  }
  text += fmt::format("{:<9} {} after {} steps on {} rank{} in {:.1f} s\n", summary.job, summary.state, summary.steps, summary.ranks, summary.ranks == 1 ? "" : "s", summary.wall_s);
  text += fmt::format("run       {}\n", run.string());
  if (!summary.digest.empty()) text += fmt::format("digest    {}\n", summary.digest);
  std::error_code code;
  if (summary.job != "sft" && std::filesystem::exists(run_paths::record(run), code)) text += fmt::format("replay    {} replay {}\n", program(), run.string());
  return text;
}

}  // namespace troupe::jobs
