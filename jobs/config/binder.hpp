#pragma once

#include <concepts>
#include <optional>
#include <set>
#include <string>
#include <type_traits>

#include "actors/base/error.hpp"
#include "jobs/config/key.hpp"

namespace troupe::jobs {

/// Reads one given value as the key wants it. Errors: bad_input with the key, what it got, what is allowed, where.
Result<Setting> read_setting(const Key& key, const Given& given);

/// Fills the fields of a configuration from settings: `binder(key, field)` for each key, then finish(). The first error stays.
class Binder {
 public:
  explicit Binder(const Settings& settings) : settings_(settings) {}

  template <class T>
  void operator()(const Key& key, T& field) {
    const std::optional<Setting> setting = take(key);
    if (!setting) return;
    if constexpr (std::same_as<T, bool>) {
      field = std::get<bool>(*setting);
    } else if constexpr (std::integral<T>) {
      field = static_cast<T>(std::get<std::int64_t>(*setting));
    } else if constexpr (std::floating_point<T>) {
      field = static_cast<T>(std::get<double>(*setting));
    } else {
      field = T(std::get<std::string>(*setting));
    }
  }

  /// Errors: the first one met; a key that no field has, with the nearest that there is; a required key that is missing.
  Result<void> finish() const;

 private:
  std::optional<Setting> take(const Key& key);

  const Settings& settings_;
  std::set<std::string, std::less<>> known_;
  std::optional<Error> error_;
};

/// A field's value as a setting.
template <class T>
Setting setting_of(const T& field) {
  if constexpr (std::same_as<T, bool>) {
    return field;
  } else if constexpr (std::integral<T>) {
    return static_cast<std::int64_t>(field);
  } else if constexpr (std::floating_point<T>) {
    return static_cast<double>(field);
  } else {
    return std::string(field);
  }
}

/// The name among `names` that `given` was probably meant to be; nothing when none is near.
template <class Names>
std::optional<std::string> nearest(std::string_view given, const Names& names);
std::size_t edit_distance(std::string_view a, std::string_view b);

template <class Names>
std::optional<std::string> nearest(std::string_view given, const Names& names) {
  std::size_t best = given.size() / 3 + 2;
  std::optional<std::string> found;
  for (const auto& name : names) {
    const std::size_t distance = edit_distance(given, name);
    if (distance < best) best = distance, found = std::string(name);
  }
  return found;
}

}  // namespace troupe::jobs
