#include <memory>

#include "jobs/cli/commands.hpp"
#include "jobs/job.hpp"

namespace troupe::jobs::cli {

void add_inspect(CLI::App& app, Action& action) {
  struct Options {
    std::string run;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("inspect", "what happened in a run: ranks, actors, messages and bytes by type, checkpoints, exits");
  command->add_option("RUN", options->run, "the run")->required();
  command->add_flag("--json", options->json, "as one JSON object");
  command->callback([&action, options] { action = [options] { return inspect_run(options->run, options->json); }; });
}

}  // namespace troupe::jobs::cli
