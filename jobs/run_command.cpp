#include "jobs/run_command.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "jobs/job.hpp"
#include "jobs/launch/launch_folder.hpp"
#include "jobs/launch/launcher.hpp"
#include "jobs/launch/stop_signals.hpp"
#include "jobs/launch/world.hpp"
#include "jobs/report/progress.hpp"
#include "jobs/report/wall_clock.hpp"

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
  JobContext context{.run = run, .world = *world, .progress = progress, .stop = stop};
  auto code = run_job(config, context);
  progress.finish();
  return end_rank(*world, std::move(code));
}

}  // namespace

Result<int> run_command(const RunOptions& options) {
  auto config = read_job(options.job, options.overrides);
  if (!config) return config.error();
  if (auto done = check_job(*config); !done) return done.error();
  const fs::path run = options.run.empty() ? new_run_folder(options.job) : fs::path(options.run);
  if (options.ranks <= 1) return run_as_rank(*config, run);
  std::vector<std::string> arguments{"run", options.job};
  arguments.insert(arguments.end(), options.overrides.begin(), options.overrides.end());
  arguments.insert(arguments.end(), {"--run", run.string()});
  return launch({.ranks = options.ranks, .arguments = std::move(arguments)});
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
