#include <fmt/format.h>

#include <charconv>
#include <memory>

#include "jobs/cli/commands.hpp"
#include "jobs/json_lines.hpp"
#include "jobs/model_source.hpp"

namespace troupe::jobs::cli {
namespace {

using Ids = std::vector<models::TokenId>;

struct Options {
  std::string model, ids, token_ids, output;
  bool has_ids = false, skip_special = false, stream = false;
};

Result<Ids> parse_ids(std::string_view text) {
  Ids ids;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    models::TokenId id = 0;
    const auto [stop, code] = std::from_chars(text.data() + begin, text.data() + end, id);
    if (code != std::errc{} || stop != text.data() + end) {
      return Error{ErrorCode::bad_input, fmt::format("--ids: want token ids with commas between, got \"{}\"", text.substr(begin, std::min<std::size_t>(end - begin, 40)))};
    }
    ids.push_back(id);
    begin = end + 1;
  }
  return ids;
}

struct Line {
  Ids ids;
  std::string where;
};

Result<std::vector<Line>> lines_of(const Options& options) {
  std::vector<Line> all;
  if (options.has_ids) {
    auto ids = parse_ids(options.ids);
    if (!ids) return ids.error();
    all.push_back({std::move(*ids), "--ids"});
    return all;
  }
  auto lines = read_json_lines(options.token_ids);
  if (!lines) return lines.error();
  for (const JsonLine& line : *lines) {
    auto ids = tokens_field(line, "token_ids");
    if (!ids) return ids.error();
    all.push_back({std::move(*ids), line.where});
  }
  return all;
}

Result<int> detokenize(const Options& options) {
  if (options.stream) return Error{ErrorCode::unsupported, "detokenize --stream: this build does not have it"};
  auto tokenizer = open_tokenizer(options.model);
  if (!tokenizer) return tokenizer.error();
  auto lines = lines_of(options);
  if (!lines) return lines.error();
  std::string out;
  for (const Line& line : *lines) {
    auto text = tokenizer->decode(line.ids, options.skip_special);
    if (!text) return Error{text.error().code, fmt::format("{}: {}", line.where, text.error().detail)};
    out += fmt::format("{{\"text\": {}}}\n", json_text(*text));
  }
  if (auto done = write_result(out, options.output); !done) return done.error();
  return 0;
}

}  // namespace

void add_detokenize(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("detokenize", "{\"token_ids\"} to {\"text\"}");
  command->add_option("MODEL", options->model, "Hugging Face folder, run or tokenizer.json")->required();
  auto* source = command->add_option_group("tokens");
  auto* ids = source->add_option("--ids", options->ids, "1,2,3");
  source->add_option("--token-ids", options->token_ids, "JSONL of {\"token_ids\"}");
  source->require_option(1);
  command->add_option("-o,--output", options->output, "JSONL to write; stdout unless given");
  command->add_flag("--skip-special", options->skip_special, "leaves special tokens out");
  command->add_flag("--stream", options->stream, "not in this build");
  command->callback([&action, options, ids] {
    options->has_ids = ids->count() > 0;
    action = [options] { return detokenize(*options); };
  });
}

}  // namespace troupe::jobs::cli
