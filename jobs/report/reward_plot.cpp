#include "jobs/report/reward_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace troupe::jobs {
namespace {

constexpr std::array kEighths{" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::vector<double> bars_of(std::span<const double> values, std::size_t columns) {
  std::vector<double> finite;
  std::copy_if(values.begin(), values.end(), std::back_inserter(finite), [](double v) { return std::isfinite(v); });
  const std::size_t count = std::min(columns, finite.size());
  std::vector<double> bars;
  for (std::size_t bar = 0; bar < count; ++bar) {
    const std::size_t begin = bar * finite.size() / count, end = (bar + 1) * finite.size() / count;
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += finite[i];
    bars.push_back(sum / static_cast<double>(end - begin));
  }
  return bars;
}

}  // namespace

std::string plot(std::span<const double> values, std::string_view title, int columns, int rows) {
  const auto bars = bars_of(values, static_cast<std::size_t>(columns));
  if (bars.size() < 2) return {};
  const auto [least, most] = std::minmax_element(bars.begin(), bars.end());
  const double low = std::min(*least, 0.0), high = *most > low ? *most : low + 1;
  std::string text = fmt::format("{}\n", title);
  for (int row = rows - 1; row >= 0; --row) {
    const double label = row == rows - 1 ? high : low;
    text += row == rows - 1 || row == 0 ? fmt::format("{:8.3f} ┤", label) : "         │";
    for (const double bar : bars) {
      const double eighths = (bar - low) / (high - low) * rows * 8 - row * 8.0;
      text += kEighths[static_cast<std::size_t>(std::clamp(std::lround(eighths), 0L, 8L))];
    }
    text += '\n';
  }
  return text;
}

}  // namespace troupe::jobs
