#include "jobs/json_lines.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>
#include <cstdio>

#include "models/files.hpp"

namespace troupe::jobs {
namespace {

namespace json = boost::json;

Error refused(std::string detail) { return {ErrorCode::bad_input, std::move(detail)}; }

std::string brief(const json::value* value) {
  if (value == nullptr) return "nothing";
  std::string text = json::serialize(*value);
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

}  // namespace

Result<std::vector<JsonLine>> read_json_lines(const std::filesystem::path& file) {
  auto text = models::read_text(file);
  if (!text) return refused(text.error().detail);
  std::vector<JsonLine> lines;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text->size();) {
    const std::size_t end = std::min(text->find('\n', begin), text->size());
    const std::string_view line = std::string_view(*text).substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = fmt::format("{}:{}", file.string(), number);
    boost::system::error_code code;
    json::value value = json::parse(line, code);
    if (code) return refused(fmt::format("{}: want a JSON object, got {}", where, code.message()));
    if (!value.is_object()) return refused(fmt::format("{}: want a JSON object, got {}", where, brief(&value)));
    lines.push_back({std::move(value.as_object()), where});
  }
  return lines;
}

bool has_field(const JsonLine& line, std::string_view field) { return line.object.if_contains(field) != nullptr; }

Result<std::string> text_field(const JsonLine& line, std::string_view field) {
  const json::value* value = line.object.if_contains(field);
  if (value == nullptr || !value->is_string()) return refused(fmt::format("{}: {}: want text, got {}", line.where, field, brief(value)));
  return std::string(value->as_string());
}

Result<std::vector<models::TokenId>> tokens_field(const JsonLine& line, std::string_view field) {
  const json::value* value = line.object.if_contains(field);
  if (value == nullptr || !value->is_array()) return refused(fmt::format("{}: {}: want a list of token ids, got {}", line.where, field, brief(value)));
  std::vector<models::TokenId> ids;
  for (const json::value& element : value->as_array()) {
    boost::system::error_code code;
    const auto id = element.is_number() ? element.to_number<std::uint32_t>(code) : 0U;
    if (!element.is_int64() || code) return refused(fmt::format("{}: {}: want whole numbers, got {}", line.where, field, brief(&element)));
    ids.push_back(id);
  }
  return ids;
}

std::string json_text(std::string_view text) { return json::serialize(json::string_view(text.data(), text.size())); }

std::string json_list(std::span<const models::TokenId> values) {
  std::string text = "[";
  for (const auto value : values) text += fmt::format("{}{}", text.size() > 1 ? ", " : "", value);
  return text + "]";
}

std::string json_list(std::span<const float> values) {
  std::string text = "[";
  for (const float value : values) {
    if (text.size() > 1) text += ", ";
    text += std::isfinite(value) ? fmt::format("{}", value) : "null";
  }
  return text + "]";
}

Result<void> write_result(const std::string& text, const std::filesystem::path& file) {
  if (!file.empty()) return models::write_text(file, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) return Error{ErrorCode::io, "stdout: could not be written"};
  return {};
}

}  // namespace troupe::jobs
