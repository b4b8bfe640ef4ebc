#include "models/kernels/rope.hpp"

#include <cmath>

#include "models/numerics/double_math.hpp"

namespace troupe::models {

RopeTable::RopeTable(std::span<const double> inverse_frequencies, double attention_factor, std::size_t positions) : half_(inverse_frequencies.size()) {
  cos_.reserve(positions * half_);
  sin_.reserve(positions * half_);
  for (std::size_t position = 0; position < positions; ++position) {
    for (const double frequency : inverse_frequencies) {
      const double angle = static_cast<double>(position) * frequency;
      cos_.push_back(static_cast<float>(numerics::cos(angle) * attention_factor));
      sin_.push_back(static_cast<float>(numerics::sin(angle) * attention_factor));
    }
  }
}

namespace {

template <bool kBackward>
void rotate(std::span<float> x, std::span<const std::uint32_t> positions, std::size_t heads, const RopeTable& table) {
  const std::size_t half = table.half();
  for (std::size_t row = 0; row < positions.size(); ++row) {
    const auto cos = table.cos(positions[row]);
    const auto sin = table.sin(positions[row]);
    for (std::size_t head = 0; head < heads; ++head) {
      float* one = &x[(row * heads + head) * 2 * half];
      float* two = one + half;
      for (std::size_t i = 0; i < half; ++i) {
        const float s = kBackward ? -sin[i] : sin[i];
        const float a = std::fma(one[i], cos[i], -(two[i] * s));
        two[i] = std::fma(two[i], cos[i], one[i] * s);
        one[i] = a;
      }
    }
  }
}

}  // namespace

void rope(ThreadPool&, std::span<float> x, std::span<const std::uint32_t> positions, std::size_t heads, const RopeTable& table) {
  rotate<false>(x, positions, heads, table);
}

void rope_backward(ThreadPool&, std::span<float> dx, std::span<const std::uint32_t> positions, std::size_t heads, const RopeTable& table) {
  rotate<true>(dx, positions, heads, table);
}

}  // namespace troupe::models
