#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>

#include "jobs/cli/commands.hpp"
#include "jobs/job.hpp"
#include "jobs/launch/launcher.hpp"
#include "jobs/launch/stop_signals.hpp"
#include "jobs/launch/world.hpp"

namespace troupe::jobs::cli {
namespace {

struct Options {
  std::string run, actor;
  std::uint32_t ranks = 0, at = 0;
  std::uint64_t shuffle = 0;
  bool json = false, gdb = false, later = false;
};

// A replay writes nothing, so there is nothing to bring to an end.
void end_at_once(int signal) {
  if (is_rank_zero()) fmt::print(stderr, "troupe: replay: stopped by {} before its end\n", signal == SIGINT ? "SIGINT" : "SIGTERM");
  note_exit_code(128 + signal);
  std::fflush(nullptr);
  _exit(128 + signal);
}

Result<int> replay(const Options& options) {
  if (options.later) return Error{ErrorCode::unsupported, "replay: --actor, --at, --gdb and --shuffle: this build does not have them"};
  std::error_code code;
  if (!std::filesystem::is_directory(options.run, code)) return Error{ErrorCode::bad_input, options.run + ": want a run's folder, got none there"};
  if (options.ranks > 1) {
    std::vector<std::string> arguments{"replay", options.run};
    if (options.json) arguments.emplace_back("--json");
    return launch({.ranks = options.ranks, .arguments = std::move(arguments)});
  }
  StopSignals stop;
  stop.on_stop(end_at_once);
  report_to_launcher();
  auto world = join_world();
  if (!world) return world.error();
  auto code_of_replay = replay_run({.run = options.run, .world = **world, .json = options.json});
  return end_rank(**world, std::move(code_of_replay));
}

}  // namespace

void add_replay(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("replay", "checks a run's files, re-executes it and compares every message: 0 when all is equal, 1 at a divergence");
  command->add_option("RUN", options->run, "the run")->required();
  command->add_option("--ranks", options->ranks, "starts so many ranks by mpirun; 1 without MPI")->check(CLI::Range(1U, 4096U));
  command->add_flag("--json", options->json, "prints the result as one JSON object");
  std::vector<CLI::Option*> later{command->add_option("--actor", options->actor, "not in this build"), command->add_option("--at", options->at, "not in this build"),
                                  command->add_flag("--gdb", options->gdb, "not in this build"), command->add_option("--shuffle", options->shuffle, "not in this build")};
  command->callback([&action, options, later] {
    for (const CLI::Option* option : later) options->later = options->later || option->count() > 0;
    action = [options] { return replay(*options); };
  });
}

}  // namespace troupe::jobs::cli
