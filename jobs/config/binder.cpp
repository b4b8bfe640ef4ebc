#include "jobs/config/binder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

namespace troupe::jobs {
namespace {

// A value in an error line: without control characters, and not long.
std::string shown(const Setting& value) {
  std::string text = print(value);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F) c = '?';
  }
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

template <class T>
std::optional<T> parse_whole_text(std::string_view text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// What the command line gave, read as the key's kind where it can be; otherwise it stays text and is refused as such.
Setting typed(const Key& key, const std::string& text) {
  switch (key.kind) {
    case Key::Kind::boolean:
      if (text == "true") return true;
      if (text == "false") return false;
      return text;
    case Key::Kind::whole:
      if (const auto value = parse_whole_text<std::int64_t>(text)) return *value;
      return text;
    case Key::Kind::number:
      if (const auto value = parse_whole_text<double>(text)) return *value;
      return text;
    case Key::Kind::text:
    case Key::Kind::path: break;
  }
  return text;
}

bool within(const Key& key, double value) {
  return std::isfinite(value) && value <= key.most && (key.excludes_least ? value > key.least : value >= key.least);
}

bool is_chosen(const Key& key, std::string_view text) {
  return key.choices.empty() || std::find(key.choices.begin(), key.choices.end(), text) != key.choices.end();
}

std::optional<Setting> accepted(const Key& key, const Setting& value, const std::filesystem::path& base) {
  switch (key.kind) {
    case Key::Kind::boolean:
      if (std::holds_alternative<bool>(value)) return value;
      break;
    case Key::Kind::whole:
      if (const auto* whole_value = std::get_if<std::int64_t>(&value);
          whole_value != nullptr && within(key, static_cast<double>(*whole_value)) && is_chosen(key, std::to_string(*whole_value))) {
        return value;
      }
      break;
    case Key::Kind::number: {
      const auto* whole_value = std::get_if<std::int64_t>(&value);
      const auto* real = std::get_if<double>(&value);
      if (whole_value == nullptr && real == nullptr) break;
      const double taken = real != nullptr ? *real : static_cast<double>(*whole_value);
      if (within(key, taken)) return taken + 0.0;
      break;
    }
    case Key::Kind::text:
      if (const auto* text = std::get_if<std::string>(&value); text != nullptr && is_chosen(key, *text)) return value;
      break;
    case Key::Kind::path:
      if (const auto* text = std::get_if<std::string>(&value); text != nullptr && text->find('\0') == std::string::npos) {
        return text->empty() ? *text : (base / *text).lexically_normal().string();
      }
      break;
  }
  return std::nullopt;
}

}  // namespace

std::string print(const Setting& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using T = std::decay_t<decltype(held)>;
        if constexpr (!std::same_as<T, std::string>) return fmt::format("{}", held);
        else {
          std::string text = "\"";
          for (const char c : held) {
            if (c == '"' || c == '\\') text += '\\';
            if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) text += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
            else text += c;
          }
          return text + '"';
        }
      },
      value);
}

std::string Key::allowed() const {
  switch (kind) {
    case Kind::boolean: return "true or false";
    case Kind::whole:
      if (choices.empty()) return fmt::format("a whole number from {:.0f} to {:.0f}", least, most);
      return fmt::format("one of {}", fmt::join(choices, ", "));
    case Kind::number: return excludes_least ? fmt::format("a number above {} and at most {}", least, most) : fmt::format("a number from {} to {}", least, most);
    case Kind::text: return choices.empty() ? "text" : fmt::format("one of {}", fmt::join(choices, ", "));
    case Kind::path: return "a path, as text";
  }
  return {};
}

Result<Setting> read_setting(const Key& key, const Given& given) {
  const auto* text = std::get_if<std::string>(&given.value);
  const Setting value = given.is_untyped && text != nullptr ? typed(key, *text) : given.value;
  if (auto setting = accepted(key, value, given.base)) return *setting;
  std::string hint;
  if (const auto* named = std::get_if<std::string>(&value); named != nullptr && !key.choices.empty()) {
    if (const auto near = nearest(*named, key.choices)) hint = fmt::format("; did you mean {}?", *near);
  }
  return Error{ErrorCode::bad_input, fmt::format("{}: want {}, got {} ({}){}", key.name, key.allowed(), shown(value), given.where, hint)};
}

std::optional<Setting> Binder::take(const Key& key) {
  known_.emplace(key.name);
  const auto found = settings_.find(std::string(key.name));
  if (found == settings_.end()) {
    if (key.is_required && !error_) error_ = Error{ErrorCode::bad_input, fmt::format("{}: missing; want {}", key.name, key.allowed())};
    return std::nullopt;
  }
  auto setting = read_setting(key, found->second);
  if (!setting) {
    if (!error_) error_ = setting.error();
    return std::nullopt;
  }
  return *setting;
}

Result<void> Binder::finish() const {
  for (const auto& [name, given] : settings_) {
    if (known_.contains(name)) continue;
    const auto near = nearest(name, known_);
    return Error{ErrorCode::bad_input, fmt::format("{}: no such key ({}){}", shown(name), given.where,
                                                   near ? fmt::format("; did you mean {}?", *near) : "; `troupe run --help` lists the keys")};
  }
  if (error_) return *error_;
  return {};
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

}  // namespace troupe::jobs
