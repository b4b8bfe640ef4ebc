#include <fmt/format.h>

#include <memory>

#include "jobs/cli/commands.hpp"
#include "jobs/json_lines.hpp"
#include "jobs/model_source.hpp"

namespace troupe::jobs::cli {
namespace {

struct Options {
  std::string model, text, texts, output;
  bool has_text = false, no_special = false, literal = false;
};

Result<std::vector<std::string>> texts_of(const Options& options) {
  if (options.has_text) return std::vector<std::string>{options.text};
  auto lines = read_json_lines(options.texts);
  if (!lines) return lines.error();
  std::vector<std::string> texts;
  for (const JsonLine& line : *lines) {
    auto text = text_field(line, "text");
    if (!text) return text.error();
    texts.push_back(std::move(*text));
  }
  return texts;
}

Result<int> tokenize(const Options& options) {
  auto tokenizer = open_tokenizer(options.model);
  if (!tokenizer) return tokenizer.error();
  auto texts = texts_of(options);
  if (!texts) return texts.error();
  std::string out;
  for (const std::string& text : *texts) {
    const auto ids = tokenizer->encode(text, {.add_special = !options.no_special, .literal = options.literal});
    out += fmt::format("{{\"token_ids\": {}}}\n", json_list(ids));
  }
  if (auto done = write_result(out, options.output); !done) return done.error();
  return 0;
}

}  // namespace

void add_tokenize(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("tokenize", "{\"text\"} to {\"token_ids\"}");
  command->add_option("MODEL", options->model, "Hugging Face folder, run or tokenizer.json")->required();
  auto* source = command->add_option_group("texts");
  auto* text = source->add_option("--text", options->text, "one text");
  source->add_option("--texts", options->texts, "JSONL of {\"text\"}");
  source->require_option(1);
  command->add_option("-o,--output", options->output, "JSONL to write; stdout unless given");
  command->add_flag("--no-special", options->no_special, "adds no special tokens");
  command->add_flag("--literal", options->literal, "takes special tokens in the text as plain text");
  command->callback([&action, options, text] {
    options->has_text = text->count() > 0;
    action = [options] { return tokenize(*options); };
  });
}

}  // namespace troupe::jobs::cli
