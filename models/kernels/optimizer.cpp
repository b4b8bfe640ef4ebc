#include "models/kernels/optimizer.hpp"

#include <array>
#include <cmath>

#include "models/kernels/reductions.hpp"

namespace troupe::models {

void adamw_update(ThreadPool&, std::span<float> p, std::span<float> m, std::span<float> v, std::span<const float> g, const AdamW& step) {
  const double keep = 1.0 - step.learning_rate * step.weight_decay;
  const double rest1 = 1.0 - step.beta1, rest2 = 1.0 - step.beta2;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double gradient = static_cast<double>(g[i]) * step.gradient_scale;
    const double mean = std::fma(step.beta1, static_cast<double>(m[i]), rest1 * gradient);
    const double square = std::fma(step.beta2, static_cast<double>(v[i]), (rest2 * gradient) * gradient);
    const double denominator = std::sqrt(square / step.correction2) + step.eps;
    const double change = step.learning_rate * (mean / step.correction1) / denominator;
    p[i] = static_cast<float>(std::fma(static_cast<double>(p[i]), keep, -change));
    m[i] = static_cast<float>(mean);
    v[i] = static_cast<float>(square);
  }
}

void row_squares(ThreadPool&, std::span<double> squares, std::span<const float> g, const SegmentCuts& cuts) {
  const std::size_t width = cuts.total();
  for (std::size_t row = 0; row < squares.size(); ++row) {
    squares[row] = segmented_sum<double>(cuts, [&](std::size_t i, double sum) {
      const auto value = static_cast<double>(g[row * width + i]);
      return std::fma(value, value, sum);
    });
  }
}

double fold_rows(std::span<const double> values, const SegmentCuts& cuts) {
  std::array<double, numerics::kSegments> sums{};
  for (std::size_t s = cuts.first; s < cuts.last; ++s) {
    for (std::size_t row = cuts.offset[s]; row < cuts.offset[s + 1]; ++row) sums[s] += values[row];
  }
  return numerics::segment_tree(std::span<const double>(sums).subspan(cuts.first, cuts.held()));
}

}  // namespace troupe::models
