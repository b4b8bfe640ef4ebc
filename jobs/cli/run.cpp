#include <memory>

#include "jobs/cli/commands.hpp"
#include "jobs/run_command.hpp"

namespace troupe::jobs::cli {

void add_run(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "runs a job, or goes on with one in the same folder");
  command->add_option("JOB", options->job, "the job file (TOML)")->required();
  command->add_option("key=value", options->overrides, "keys of the job file; the last of a key wins");
  command->add_option("--run", options->run, "the run's folder; runs/NAME-DATE-ID unless given");
  command->add_option("--ranks", options->ranks, "starts so many ranks by mpirun; 1 without MPI")->check(CLI::Range(1U, 4096U));
  command->add_flag("--json", options->json, "prints summary.json at the end");
  command->footer([] { return list_keys(); });
  command->callback([&action, options] { action = [options] { return run_command(*options); }; });
}

}  // namespace troupe::jobs::cli
