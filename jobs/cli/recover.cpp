#include <memory>

#include "jobs/cli/commands.hpp"
#include "jobs/job.hpp"

namespace troupe::jobs::cli {

void add_recover(CLI::App& app, Action& action) {
  auto run = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("recover", "seals the record of a killed run");
  command->add_option("RUN", *run, "the run")->required();
  command->callback([&action, run] { action = [run] { return recover_run(*run); }; });
}

}  // namespace troupe::jobs::cli
