#pragma once

#include <span>
#include <string>
#include <string_view>

namespace troupe::jobs {

/// A plot for a terminal: `rows` lines of up to `columns` bars with the range at the left; each bar is the mean of its steps.
/// Empty for fewer than two finite values.
std::string plot(std::span<const double> values, std::string_view title, int columns = 60, int rows = 8);

}  // namespace troupe::jobs
