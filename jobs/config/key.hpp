#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace troupe::jobs {

/// A value of a key, as TOML types it.
using Setting = std::variant<bool, std::int64_t, double, std::string>;

/// What a change of a key can change.
enum class Effect : std::uint8_t {
  result,   ///< the weights, the messages or the metrics: part of the configuration's digest
  layout,   ///< where and how it is computed; never a bit of the result
  content,  ///< names a file or folder, which is compared by what it holds
};

/// One key of a job file, as data. Built in place: `whole("steps", "optimiser steps", 1, 1e9)`.
struct Key {
  enum class Kind : std::uint8_t { boolean, whole, number, text, path };

  std::string_view name;   ///< dotted
  std::string_view about;  ///< one line, with the unit
  Kind kind = Kind::text;
  double least = 0;             ///< of whole and number
  double most = 0;              ///< of whole and number
  bool excludes_least = false;  ///< of number: the least value itself is not allowed
  std::vector<std::string_view> choices = {};  ///< of text; of whole, when not empty, in place of the range
  Effect effect = Effect::result;
  bool is_required = false;  ///< of text and path: may not be empty

  Key&& layout() && { return effect = Effect::layout, std::move(*this); }
  Key&& required() && { return is_required = true, std::move(*this); }
  /// Effect::result unless it says otherwise.
  std::string allowed() const;  ///< "a whole number from 1 to 8", "one of a, b"
};

inline Key boolean(std::string_view name, std::string_view about) { return {.name = name, .about = about, .kind = Key::Kind::boolean}; }
inline Key whole(std::string_view name, std::string_view about, double least, double most) {
  return {.name = name, .about = about, .kind = Key::Kind::whole, .least = least, .most = most};
}
inline Key degree(std::string_view name, std::string_view about) {
  return {.name = name, .about = about, .kind = Key::Kind::whole, .least = 1, .most = 8, .choices = {"1", "2", "4", "8"}};
}
inline Key number(std::string_view name, std::string_view about, double least, double most) {
  return {.name = name, .about = about, .kind = Key::Kind::number, .least = least, .most = most};
}
inline Key positive(std::string_view name, std::string_view about, double most) {
  return {.name = name, .about = about, .kind = Key::Kind::number, .least = 0, .most = most, .excludes_least = true};
}
inline Key choice(std::string_view name, std::string_view about, std::vector<std::string_view> choices) {
  return {.name = name, .about = about, .kind = Key::Kind::text, .choices = std::move(choices)};
}
inline Key path(std::string_view name, std::string_view about) {
  return {.name = name, .about = about, .kind = Key::Kind::path, .effect = Effect::content};
}

/// A value that somebody gave, and where.
struct Given {
  Setting value;
  std::string where;           ///< "grpo.toml:12", "command line"
  std::filesystem::path base;  ///< what a relative path in it is relative to
  bool is_untyped = false;     ///< text of the command line, still to be read as the key's type
};

/// Values by dotted key.
using Settings = std::map<std::string, Given>;

/// As it stands in a job file: true, 12, 0.001, "text".
std::string print(const Setting& value);

}  // namespace troupe::jobs
