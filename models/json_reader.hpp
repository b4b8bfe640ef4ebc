#pragma once

// For .cpp files alone: it brings in Boost.JSON.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "actors/base/error.hpp"

namespace troupe::models {

/// Parses one JSON text; the error says where in it.
Result<boost::json::value> parse_json(std::string_view text, std::string_view where, ErrorCode code);

/// A value in an error line: as JSON, cut at 60 characters.
std::string brief(const boost::json::value& value);

/// Reads keys of an object. The first error stays; later reads then give defaults, so a caller checks once, at its end.
class JsonReader {
 public:
  /// `where` names the file, and the path to a nested object.
  JsonReader(const boost::json::object& object, std::string where) : object_(object), where_(std::move(where)) {}

  bool has(std::string_view key) const { return find(key) != nullptr; }
  const boost::json::value* find(std::string_view key) const;  ///< null: not there, or there as null

  std::uint32_t whole(std::string_view key, std::optional<std::uint32_t> otherwise = {});
  double number(std::string_view key, std::optional<double> otherwise = {});
  bool boolean(std::string_view key, bool otherwise);
  std::string text(std::string_view key, std::optional<std::string> otherwise = {});

  void fail(std::string_view key, std::string_view wanted, ErrorCode code = ErrorCode::bad_input);
  const std::optional<Error>& error() const { return error_; }
  const std::string& where() const { return where_; }

 private:
  const boost::json::object& object_;
  std::string where_;
  std::optional<Error> error_;
};

/// The nearest double to what stood in the text, for texts of up to 15 digits: Boost.JSON 1.81 may be off by an ulp.
double exact_number(const boost::json::value& value);

}  // namespace troupe::models
