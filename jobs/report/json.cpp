#include "jobs/report/json.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cmath>

namespace troupe::jobs {

std::string json_number(double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

std::string json_string(std::string_view text) { return boost::json::serialize(boost::json::string_view(text.data(), text.size())); }

std::string json_fields(const Metrics& metrics) {
  std::string text;
  for (const auto& [name, value] : metrics) text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", json_string(name), json_number(value));
  return text;
}

}  // namespace troupe::jobs
