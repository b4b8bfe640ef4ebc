#pragma once

#include <string_view>

#include "actors/base/ids.hpp"

/// Outside troupe, for the compiler writes names relative to the namespace it is in: a user's Ping must differ from troupe::Ping.
namespace troupe_type_names {
template <class T>
constexpr std::string_view pretty() {
  return __PRETTY_FUNCTION__;
}
}  // namespace troupe_type_names

namespace troupe {

/// The type's qualified name as the compiler writes it, e.g. "troupe::jobs::Generate"; every rank runs the same binary.
template <class T>
constexpr std::string_view type_name() {
  constexpr std::string_view pretty = troupe_type_names::pretty<T>();
  constexpr std::string_view start_mark = "T = ";
  const std::size_t start = pretty.find(start_mark) + start_mark.size();
  const std::size_t end = pretty.find_first_of(";]", start);
  return pretty.substr(start, end - start);
}

template <class T>
TypeId type_id() {
  static const TypeId id{digest64(type_name<T>())};
  return id;
}

}  // namespace troupe
