#include "models/json_reader.hpp"

#include <charconv>
#include <cmath>

namespace troupe::models {

Result<boost::json::value> parse_json(std::string_view text, std::string_view where, ErrorCode code) {
  boost::json::stream_parser parser;
  boost::json::error_code error;
  std::size_t at = 0;
  try {
    at = parser.write_some(text, error);
    // What write_some leaves behind the value may only be white space.
    if (!error) {
      const auto rest = text.find_first_not_of(" \t\r\n", at);
      if (rest != std::string_view::npos) return Error{code, fmt::format("{}: want the end of the JSON text, got more at offset {}", where, rest)};
      parser.finish(error);
      if (!error) return parser.release();
    }
  } catch (const std::exception& thrown) {
    return Error{code, fmt::format("{}: bad JSON at offset {}: {}", where, at, thrown.what())};
  }
  return Error{code, fmt::format("{}: bad JSON at offset {}: {}", where, at, error.message())};
}

std::string brief(const boost::json::value& value) {
  std::string text = boost::json::serialize(value);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

double exact_number(const boost::json::value& value) {
  if (value.is_int64()) return static_cast<double>(value.get_int64());
  if (value.is_uint64()) return static_cast<double>(value.get_uint64());
  const std::string text = fmt::format("{:.15g}", value.get_double());
  double out = 0.0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

const boost::json::value* JsonReader::find(std::string_view key) const {
  const boost::json::value* found = object_.if_contains(key);
  return found == nullptr || found->is_null() ? nullptr : found;
}

void JsonReader::fail(std::string_view key, std::string_view wanted, ErrorCode code) {
  if (error_) return;
  const boost::json::value* found = object_.if_contains(key);
  error_ = Error{code, fmt::format("{}: {}: want {}, got {}", where_, key, wanted, found == nullptr ? "nothing" : brief(*found))};
}

std::uint32_t JsonReader::whole(std::string_view key, std::optional<std::uint32_t> otherwise) {
  const boost::json::value* found = find(key);
  if (found == nullptr && otherwise) return *otherwise;
  const double value = found != nullptr && found->is_number() ? exact_number(*found) : -1.0;
  if (value < 0.0 || value > 2147483647.0 || value != std::floor(value)) {
    fail(key, "a whole number of 0 to 2147483647");
    return 1;
  }
  return static_cast<std::uint32_t>(value);
}

double JsonReader::number(std::string_view key, std::optional<double> otherwise) {
  const boost::json::value* found = find(key);
  if (found == nullptr && otherwise) return *otherwise;
  if (found == nullptr || !found->is_number() || !std::isfinite(exact_number(*found))) {
    fail(key, "a number");
    return 1.0;
  }
  return exact_number(*found);
}

bool JsonReader::boolean(std::string_view key, bool otherwise) {
  const boost::json::value* found = find(key);
  if (found == nullptr) return otherwise;
  if (!found->is_bool()) fail(key, "true or false");
  return found->is_bool() && found->get_bool();
}

std::string JsonReader::text(std::string_view key, std::optional<std::string> otherwise) {
  const boost::json::value* found = find(key);
  if (found == nullptr && otherwise) return *otherwise;
  if (found == nullptr || !found->is_string()) {
    fail(key, "a text");
    return {};
  }
  return std::string(found->get_string());
}

}  // namespace troupe::models
