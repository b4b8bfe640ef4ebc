#include <fmt/format.h>

#include <memory>
#include <optional>

#include "jobs/cli/commands.hpp"
#include "jobs/cli/compute.hpp"
#include "jobs/json_lines.hpp"
#include "jobs/model_source.hpp"
#include "models/engine.hpp"

namespace troupe::jobs::cli {
namespace {

struct Options {
  std::string model, prompt, prompts, output;
  bool has_prompt = false;
  std::uint32_t max_tokens = 16, n = 1;
  models::Sampling sampling;
  bool ignore_eos = false;
  ComputeOptions compute;
};

Error refused(std::string detail) { return {ErrorCode::bad_input, std::move(detail)}; }

Result<std::vector<models::TokenId>> encoded(const LoadedModel& model, std::string_view text) {
  if (!model.tokenizer) return refused("prompt: want a model with a tokenizer.json, got one without; give token_ids instead");
  return model.tokenizer->encode(text);
}

Result<std::vector<models::TokenId>> prompt_of(const LoadedModel& model, const JsonLine& line) {
  if (has_field(line, "messages")) return Error{ErrorCode::unsupported, fmt::format("{}: messages: this build does not render chat templates; give prompt or token_ids", line.where)};
  if (has_field(line, "token_ids")) return tokens_field(line, "token_ids");
  if (!has_field(line, "prompt")) return refused(fmt::format("{}: want \"prompt\" or \"token_ids\", got neither", line.where));
  auto text = text_field(line, "prompt");
  if (!text) return text.error();
  return encoded(model, *text);
}

Result<std::vector<std::vector<models::TokenId>>> prompts_of(const Options& options, const LoadedModel& model) {
  std::vector<std::vector<models::TokenId>> prompts;
  if (options.has_prompt) {
    auto ids = encoded(model, options.prompt);
    if (!ids) return ids.error();
    prompts.push_back(std::move(*ids));
    return prompts;
  }
  auto lines = read_json_lines(options.prompts);
  if (!lines) return lines.error();
  for (const JsonLine& line : *lines) {
    auto ids = prompt_of(model, line);
    if (!ids) return ids.error();
    if (ids->empty()) return refused(fmt::format("{}: want a prompt of at least one token, got none", line.where));
    prompts.push_back(std::move(*ids));
  }
  return prompts;
}

Result<std::string> line_of(const models::Completion& completion, const LoadedModel& model) {
  std::string text;
  if (model.tokenizer) {
    std::span<const models::TokenId> shown = completion.tokens;
    if (completion.reason == models::FinishReason::stop) shown = shown.first(shown.size() - 1);  // the end token
    auto decoded = model.tokenizer->decode(shown);
    if (!decoded) return decoded.error();
    text = std::move(*decoded);
  }
  return fmt::format("{{\"prompt\": {}, \"sample\": {}, \"text\": {}, \"token_ids\": {}, \"logprobs\": {}, \"finish_reason\": \"{}\"}}\n", completion.prompt,
                     completion.sample, json_text(text), json_list(completion.tokens), json_list(completion.logprobs), models::to_string(completion.reason));
}

Result<int> generate(const Options& options) {
  if (auto done = models::check_sampling(options.sampling); !done) return done.error();
  auto model = open_model(options.model);
  if (!model) return model.error();
  auto prompts = prompts_of(options, *model);
  if (!prompts) return prompts.error();
  auto pool = options.compute.start();
  if (!pool) return pool.error();
  auto computing = models::Model::create(model->config, model->weights, **pool);
  if (!computing) return computing.error();

  std::vector<models::Request> requests;
  for (std::size_t i = 0; i < prompts->size(); ++i) {
    requests.push_back({.prompt = (*prompts)[i], .draw = i, .n = options.n, .max_tokens = options.max_tokens, .sampling = options.sampling, .ignore_eos = options.ignore_eos});
  }
  models::Engine engine(**computing, {.batch_max = options.compute.batch});
  auto completions = engine.generate(requests);
  if (!completions) return completions.error();
  std::string text;
  for (const auto& completion : *completions) {
    auto line = line_of(completion, *model);
    if (!line) return line.error();
    text += *line;
  }
  if (auto done = write_result(text, options.output); !done) return done.error();
  return 0;
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("generate", "samples responses: one JSON object a sample, in the order of the prompts");
  command->add_option("MODEL", options->model, "Hugging Face folder or run")->required();
  auto* source = command->add_option_group("prompts");
  auto* prompt = source->add_option("--prompt", options->prompt, "one prompt");
  source->add_option("--prompts", options->prompts, "JSONL of {\"prompt\"} or {\"token_ids\"}");
  source->require_option(1);
  command->add_option("-o,--output", options->output, "JSONL to write; stdout unless given");
  command->add_option("--max-tokens", options->max_tokens, "most tokens of a sample")->check(CLI::Range(1U, 1U << 24))->capture_default_str();
  command->add_option("--temperature", options->sampling.temperature, "0 is greedy")->capture_default_str();
  command->add_option("--top-k", options->sampling.top_k, "keep the k likeliest tokens; 0: all")->capture_default_str();
  command->add_option("--top-p", options->sampling.top_p, "keep the likeliest tokens that reach this probability")->capture_default_str();
  command->add_option("--min-p", options->sampling.min_p, "keep tokens of at least this share of the likeliest's probability")->capture_default_str();
  command->add_option("--n", options->n, "samples a prompt")->check(CLI::Range(1U, 1U << 20))->capture_default_str();
  command->add_option("--seed", options->sampling.seed, "of the draws")->capture_default_str();
  command->add_flag("--ignore-eos", options->ignore_eos, "go on after the end token");
  options->compute.add_to(*command);
  command->callback([&action, options, prompt] {
    options->has_prompt = prompt->count() > 0;
    action = [options] { return generate(*options); };
  });
}

}  // namespace troupe::jobs::cli
