#pragma once

#include <map>
#include <string>
#include <string_view>

namespace troupe::jobs {

/// Named numbers, ascending.
using Metrics = std::map<std::string, double>;

/// As JSON: shortest digits that read back to the same double; null for what JSON cannot say (NaN, infinities).
std::string json_number(double value);
std::string json_string(std::string_view text);
/// `"name": number` pairs with commas between, without braces.
std::string json_fields(const Metrics& metrics);

}  // namespace troupe::jobs
