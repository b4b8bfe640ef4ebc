#include "models/kernels/linear.hpp"

#include <array>
#include <cmath>

#include "models/numerics/trees.hpp"

namespace troupe::models {

namespace {

float element(const float* x, const PackedMatrix& b, std::size_t output) {
  const SegmentCuts& cuts = b.cuts();
  const float* column = b.panel(output / PackedMatrix::kPanel) + output % PackedMatrix::kPanel;
  std::array<float, numerics::kSegments> sums{};
  for (std::size_t s = cuts.first; s < cuts.last; ++s) {
    for (std::size_t k = cuts.offset[s]; k < cuts.offset[s + 1]; ++k) sums[s] = std::fma(x[k], column[k * PackedMatrix::kPanel], sums[s]);
  }
  return numerics::segment_tree(std::span<const float>(sums).subspan(cuts.first, cuts.held()));
}

}  // namespace

void linear(ThreadPool& pool, std::span<float> y, std::span<const float> x, std::size_t rows, const PackedMatrix& b) {
  pool.parallel_ranges(rows, 4, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      for (std::size_t output = 0; output < b.outputs(); ++output) y[row * b.outputs() + output] = element(&x[row * b.depth()], b, output);
    }
  });
}

void add_bias(ThreadPool&, std::span<float> y, std::span<const float> bias, std::size_t rows) {
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < bias.size(); ++i) y[row * bias.size() + i] += bias[i];
  }
}

void add(ThreadPool&, std::span<float> y, std::span<const float> x) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += x[i];
}

void scale(ThreadPool&, std::span<float> y, float factor) {
  for (float& value : y) value *= factor;
}

}  // namespace troupe::models
