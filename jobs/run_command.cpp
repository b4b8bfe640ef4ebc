#include "jobs/run_command.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "jobs/job.hpp"
#include "jobs/launch/launch_folder.hpp"
#include "jobs/launch/launcher.hpp"
#include "jobs/launch/stop_signals.hpp"
#include "jobs/launch/world.hpp"
#include "jobs/report/progress.hpp"
#include "jobs/report/summary.hpp"
#include "jobs/report/wall_clock.hpp"
#include "models/files.hpp"

namespace troupe::jobs {
namespace {

namespace fs = std::filesystem;

// runs/NAME-DATE-ID: the id sets apart what starts within a second.
fs::path new_run_folder(const fs::path& job) {
  return fs::path("runs") / fmt::format("{}-{}-{:04x}", job.stem().string(), date_for_names(), static_cast<std::uint64_t>(unix_seconds() * 1e6) % 0x10000);
}

Result<int> run_as_rank(const JobConfig& config, const fs::path& run) {
  StopSignals stop;
  report_to_launcher();
  auto world = join_world();
  if (!world) return world.error();
  Progress progress = Progress::for_this_rank();
  auto code = run_job(config, run, **world, progress, stop);
  progress.finish();
  return end_rank(**world, std::move(code));
}

Result<int> launch_ranks(const RunOptions& options, const JobConfig& config, const fs::path& run) {
  auto state = RunFolder::look(run, config);
  if (!state) return state.error();
  if (*state == RunState::finished) return 0;
  std::vector<std::string> arguments{"run", options.job};
  arguments.insert(arguments.end(), options.overrides.begin(), options.overrides.end());
  arguments.insert(arguments.end(), {"--run", run.string()});
  return launch({.ranks = options.ranks, .arguments = std::move(arguments)});
}

// In the process that people started. A rank of a launcher leaves it to that.
Result<void> print_end(const fs::path& run, bool json) {
  if (LaunchFolder::of_this_process()) return {};
  std::error_code code;
  if (!fs::exists(run_paths::summary(run), code)) return {};
  auto text = json ? models::read_text(run_paths::summary(run)) : describe_run(run);
  if (!text) return text.error();
  fmt::print("{}", *text);
  std::fflush(stdout);
  return {};
}

}  // namespace

Result<int> run_command(const RunOptions& options) {
  auto config = read_job(options.job, options.overrides);
  if (!config) return config.error();
  if (auto done = check_job(*config); !done) return done.error();
  const fs::path run = options.run.empty() ? new_run_folder(options.job) : fs::path(options.run);
  auto code = options.ranks > 1 ? launch_ranks(options, *config, run) : run_as_rank(*config, run);
  if (code && is_rank_zero() && (*code == 0 || *code == 1)) {
    if (auto done = print_end(run, options.json); !done && *code == 0) return done.error();
  }
  return code;
}

std::string list_keys() {
  std::string text;
  for (const std::string_view job : {SftConfig::kJob, GrpoConfig::kJob}) {
    text += fmt::format("\nKeys of job = \"{}\":\n", job);
    for (const auto& [key, value] : schema(job)) {
      text += fmt::format("  {:<40} {}: {} (default {}){}\n", key.name, key.about, key.allowed(), print(value), key.effect == Effect::layout ? "; never changes a result" : "");
    }
  }
  return text;
}

}  // namespace troupe::jobs
