#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "jobs/cli/commands.hpp"
#include "jobs/json_lines.hpp"
#include "jobs/compute.hpp"
#include "jobs/model_source.hpp"
#include "models/weights.hpp"

namespace troupe::jobs::cli {
namespace {

struct Options {
  std::string path;
  bool tensors = false;
};

Result<int> digest(const Options& options) {
  auto model = open_model(options.path);
  if (!model) return model.error();
  const auto digests = models::tensor_digests(model->weights, usable_cores());
  std::string text;
  if (options.tensors) {
    for (const auto& tensor : digests) {
      text += fmt::format("{}  {}  {}  {}\n", tensor.digest.hex(), models::to_string(tensor.dtype), fmt::join(tensor.shape, "x"), tensor.name);
    }
  } else {
    text = models::combine(digests).hex() + "\n";
  }
  if (auto done = write_result(text, {}); !done) return done.error();
  return 0;
}

}  // namespace

void add_digest(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("digest", "the weights' digest of a run (its last weights), a checkpoint or a model folder");
  command->add_option("PATH", options->path, "run, checkpoint or model folder")->required();
  command->add_flag("--tensors", options->tensors, "one line a tensor: digest, dtype, shape, name");
  command->callback([&action, options] { action = [options] { return digest(*options); }; });
}

}  // namespace troupe::jobs::cli
