#pragma once

#include <boost/json/object.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/base/error.hpp"
#include "models/tokenizer.hpp"

namespace troupe::jobs {

/// One line of a JSONL file: an object, and where it stands ("FILE:LINE").
struct JsonLine {
  boost::json::object object;
  std::string where;
};

/// All lines; empty ones are passed over. Errors: bad_input, with file and line.
Result<std::vector<JsonLine>> read_json_lines(const std::filesystem::path& file);

/// Fields of a line. Errors: bad_input naming the line, the field, what it got.
Result<std::string> text_field(const JsonLine& line, std::string_view field);
Result<std::vector<models::TokenId>> tokens_field(const JsonLine& line, std::string_view field);
bool has_field(const JsonLine& line, std::string_view field);

/// As JSON: a string with its quotes; lists whose numbers read back to the same value.
std::string json_text(std::string_view text);
std::string json_list(std::span<const models::TokenId> values);
std::string json_list(std::span<const float> values);

/// Writes a command's result: into the file, aside and renamed, or to stdout when there is none.
Result<void> write_result(const std::string& text, const std::filesystem::path& file);

}  // namespace troupe::jobs
