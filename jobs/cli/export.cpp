#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <optional>

#include "jobs/cli/commands.hpp"
#include "jobs/model_source.hpp"
#include "models/weights.hpp"

namespace troupe::jobs::cli {
namespace {

struct Options {
  std::string run;
  std::string output;
  std::optional<std::uint64_t> step;
};

Result<int> export_weights(const Options& options) {
  std::error_code code;
  if (std::filesystem::exists(options.output, code) && !std::filesystem::is_empty(options.output, code)) {
    return Error{ErrorCode::bad_input, fmt::format("{}: want a folder that is not there or empty, got one with files", options.output)};
  }
  auto model = options.step ? open_model_at(options.run, *options.step) : open_model(options.run);
  if (!model) return model.error();
  auto done = models::save_model_folder(options.output, model->config, model->weights, model->tokenizer ? &*model->tokenizer : nullptr);
  if (!done) return done.error();
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("export", "writes a run's weights as a Hugging Face folder");
  command->add_option("RUN", options->run, "the run")->required();
  command->add_option("--step", options->step, "of the checkpoint; the last one unless given");
  command->add_option("-o,--output", options->output, "the folder to write")->required();
  command->callback([&action, options] { action = [options] { return export_weights(*options); }; });
}

}  // namespace troupe::jobs::cli
