#include <fmt/format.h>

#include <array>

#include "jobs/cli/commands.hpp"

namespace troupe::jobs::cli {

void add_later(CLI::App& app, Action& action) {
  static constexpr std::array kCommands{"render", "debug", "dap", "fork", "diff", "bisect", "timeline", "inspect-tensor", "status", "models"};
  for (const char* name : kCommands) {
    CLI::App* command = app.add_subcommand(name, "not in this build")->group("");
    command->allow_extras();
    command->callback([&action, name] {
      action = [name]() -> Result<int> { return Error{ErrorCode::unsupported, fmt::format("{}: this build does not have the command", name)}; };
    });
  }
}

}  // namespace troupe::jobs::cli
