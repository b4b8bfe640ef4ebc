#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/rope.cpp"
#include <hwy/foreach_target.h>

#include "models/kernels/vectors.hpp"

#include "models/kernels/rope.hpp"

#include <algorithm>

#include "models/numerics/double_math.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::models::HWY_NAMESPACE {

/// All heads of one position; turned the other way for the gradient.
void rotate(float* x, const float* cos, const float* sin, std::size_t heads, std::size_t half, bool is_backward) {
  for_vectors(0, half, [&](std::size_t i, std::size_t n) HWY_ATTR {
    const Vector c = load(cos + i, n);
    const Vector s = is_backward ? hn::Neg(load(sin + i, n)) : load(sin + i, n);
    for (std::size_t head = 0; head < heads; ++head) {
      float* one = x + head * 2 * half + i;
      float* two = one + half;
      const Vector a = load(one, n), b = load(two, n);
      store(hn::MulSub(a, c, hn::Mul(b, s)), one, n);
      store(hn::MulAdd(b, c, hn::Mul(a, s)), two, n);
    }
  });
}

}  // namespace troupe::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::models {

HWY_EXPORT(rotate);

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

constexpr std::size_t kPartFloats = std::size_t{1} << 15;  ///< below it, waking a thread costs more than it saves

void rotate_all(ThreadPool& pool, std::span<float> x, std::span<const std::uint32_t> positions, std::size_t heads, const RopeTable& table, bool is_backward) {
  const std::size_t width = std::max<std::size_t>(1, heads * 2 * table.half());
  pool.parallel_ranges(positions.size(), std::max<std::size_t>(1, kPartFloats / width), [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const std::uint32_t position = positions[row];
      HWY_DYNAMIC_DISPATCH(rotate)(x.data() + row * width, table.cos(position).data(), table.sin(position).data(), heads, table.half(), is_backward);
    }
  });
}

}  // namespace

void rope(ThreadPool& pool, std::span<float> x, std::span<const std::uint32_t> positions, std::size_t heads, const RopeTable& table) {
  rotate_all(pool, x, positions, heads, table, false);
}

void rope_backward(ThreadPool& pool, std::span<float> dx, std::span<const std::uint32_t> positions, std::size_t heads, const RopeTable& table) {
  rotate_all(pool, dx, positions, heads, table, true);
}

}  // namespace troupe::models
#endif
