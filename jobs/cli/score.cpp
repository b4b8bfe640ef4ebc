#include <fmt/format.h>

#include <memory>

#include "jobs/cli/commands.hpp"
#include "jobs/cli/compute.hpp"
#include "jobs/json_lines.hpp"
#include "jobs/model_source.hpp"
#include "models/engine.hpp"

namespace troupe::jobs::cli {
namespace {

struct Options {
  std::string model, tokens, output;
  ComputeOptions compute;
};

Result<int> score(const Options& options) {
  auto model = open_model(options.model);
  if (!model) return model.error();
  auto lines = read_json_lines(options.tokens);
  if (!lines) return lines.error();
  std::vector<std::vector<models::TokenId>> sequences;
  for (const JsonLine& line : *lines) {
    auto ids = tokens_field(line, "token_ids");
    if (!ids) return ids.error();
    if (ids->empty()) return Error{ErrorCode::bad_input, fmt::format("{}: token_ids: want at least one, got none", line.where)};
    sequences.push_back(std::move(*ids));
  }
  auto pool = options.compute.start();
  if (!pool) return pool.error();
  auto computing = models::Model::create(model->config, model->weights, **pool);
  if (!computing) return computing.error();
  models::Engine engine(**computing, {.batch_max = options.compute.batch});
  auto scores = engine.score(sequences);
  if (!scores) return scores.error();
  std::string text;
  for (const auto& logprobs : *scores) text += fmt::format("{{\"logprobs\": {}}}\n", json_list(logprobs));
  if (auto done = write_result(text, options.output); !done) return done.error();
  return 0;
}

}  // namespace

void add_score(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("score", "log-probabilities of given tokens: {\"token_ids\": [n]} to {\"logprobs\": [n-1]}");
  command->add_option("MODEL", options->model, "Hugging Face folder or run")->required();
  command->add_option("--tokens", options->tokens, "JSONL of {\"token_ids\"}")->required();
  command->add_option("-o,--output", options->output, "JSONL to write; stdout unless given");
  options->compute.add_to(*command);
  command->callback([&action, options] { action = [options] { return score(*options); }; });
}

}  // namespace troupe::jobs::cli
