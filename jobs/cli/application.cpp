#include <fmt/format.h>

#include <algorithm>

#include "jobs/cli/commands.hpp"
#include "jobs/config/binder.hpp"
#include "jobs/exit_code.hpp"

namespace troupe::jobs::cli {
namespace {

int refuse(std::string detail) { return print_error({ErrorCode::bad_input, std::move(detail)}); }

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(command->get_name());
  return names;
}

}  // namespace

int run_command_line(std::vector<std::string> arguments) {
  CLI::App app("Actors for MPI clusters that run language-model rollouts and reinforcement learning bit-exactly.", "troupe");
  app.require_subcommand(0, 1);
  app.set_help_flag("-h,--help", "what there is, and how to call it");
  app.get_formatter()->column_width(28);
  Action action;
  add_run(app, action);
  add_replay(app, action);
  add_plan(app, action);
  add_inspect(app, action);
  add_digest(app, action);
  add_export(app, action);
  add_generate(app, action);
  add_score(app, action);
  add_tokenize(app, action);
  add_detokenize(app, action);
  add_recover(app, action);
  add_later(app, action);

  if (arguments.empty()) return refuse("want a command; `troupe --help` lists them");
  const auto names = command_names(app);
  if (!arguments[0].starts_with('-') && std::find(names.begin(), names.end(), arguments[0]) == names.end()) {
    const auto near = nearest(arguments[0], names);
    return refuse(fmt::format("{}: no such command; {}", arguments[0], near ? fmt::format("did you mean {}?", *near) : "`troupe --help` lists them"));
  }
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  try {
    app.parse(arguments);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    const auto given = app.get_subcommands();
    return refuse(given.empty() ? error.what() : fmt::format("{}: {} (`troupe {} --help`)", given[0]->get_name(), error.what(), given[0]->get_name()));
  }
  if (!action) return refuse("want a command; `troupe --help` lists them");
  auto code = action();
  if (code) return *code;
  return print_error(code.error());
}

}  // namespace troupe::jobs::cli
