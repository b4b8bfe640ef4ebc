#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "actors/base/error.hpp"

namespace troupe::jobs::cli {

/// What the parsed command line wants done; gives the exit code.
using Action = std::function<Result<int>()>;

/// Each adds one command to the application and sets the action when it is the one given.
void add_run(CLI::App& app, Action& action);
void add_replay(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_digest(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_score(CLI::App& app, Action& action);
void add_tokenize(CLI::App& app, Action& action);
void add_detokenize(CLI::App& app, Action& action);
void add_recover(CLI::App& app, Action& action);
/// The commands that later builds have: refused by name.
void add_later(CLI::App& app, Action& action);

/// `troupe ARGUMENTS…`: parses, runs, prints an error's one line on stderr; the exit code.
int run_command_line(std::vector<std::string> arguments);

}  // namespace troupe::jobs::cli
