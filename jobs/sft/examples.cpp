#include "jobs/sft/examples.hpp"

#include <fmt/format.h>

#include <iterator>

#include "jobs/json_lines.hpp"
#include "models/training/packing.hpp"

namespace troupe::jobs {
namespace {

Error refused(std::string detail) { return {ErrorCode::bad_input, std::move(detail)}; }

Result<models::TrainingSequence> instruction_of(const JsonLine& line, const models::Tokenizer& tokenizer, std::uint32_t max_length) {
  auto prompt = text_field(line, "prompt");
  if (!prompt) return prompt.error();
  auto response = text_field(line, "response");
  if (!response) return response.error();
  const auto asked = tokenizer.encode(*prompt);
  auto answered = tokenizer.encode(*response, {.add_special = false});
  answered.push_back(tokenizer.end());
  if (asked.empty()) return refused(fmt::format("{}: prompt: want at least one token, got none", line.where));
  if (asked.size() + answered.size() > max_length) {
    return refused(fmt::format("{}: want at most data.max_length = {} tokens, got {}", line.where, max_length, asked.size() + answered.size()));
  }
  return models::instruction(asked, answered);
}

}  // namespace

Result<std::vector<models::TrainingSequence>> read_examples(const std::filesystem::path& file, const models::Tokenizer& tokenizer, std::uint32_t max_length) {
  auto lines = read_json_lines(file);
  if (!lines) return lines.error();
  std::vector<models::TrainingSequence> examples;
  std::vector<models::TokenId> stream;
  for (const JsonLine& line : *lines) {
    if (has_field(line, "text")) {
      auto text = text_field(line, "text");
      if (!text) return text.error();
      const auto tokens = tokenizer.encode(*text);
      stream.insert(stream.end(), tokens.begin(), tokens.end());
      stream.push_back(tokenizer.end());
      continue;
    }
    if (!has_field(line, "prompt")) return refused(fmt::format("{}: want \"prompt\" and \"response\", or \"text\", got neither", line.where));
    auto example = instruction_of(line, tokenizer, max_length);
    if (!example) return example.error();
    examples.push_back(std::move(*example));
  }
  auto packed = models::cut_stream(stream, max_length);
  std::move(packed.begin(), packed.end(), std::back_inserter(examples));
  if (examples.empty()) return refused(fmt::format("{}: want at least one example, got none", file.string()));
  return examples;
}

}  // namespace troupe::jobs
