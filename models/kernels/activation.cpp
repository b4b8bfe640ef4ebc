#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/activation.cpp"
#include <hwy/foreach_target.h>

#include "models/kernels/vectors.hpp"

#include "models/kernels/activation.hpp"

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace troupe::models::HWY_NAMESPACE {

void swiglu_range(float* h, const float* gate, const float* up, std::size_t begin, std::size_t end) {
  for_vectors(begin, end, [&](std::size_t i, std::size_t n) HWY_ATTR {
    const Vector g = load(gate + i, n);
    store(hn::Mul(hn::Mul(g, sigmoid_of(g)), load(up + i, n)), h + i, n);
  });
}

void swiglu_backward_range(float* dgate, float* dup, const float* dh, const float* gate, const float* up, std::size_t begin, std::size_t end) {
  const Vector one = hn::Set(Lanes(), 1.0F);
  for_vectors(begin, end, [&](std::size_t i, std::size_t n) HWY_ATTR {
    const Vector g = load(gate + i, n), dhi = load(dh + i, n);
    const Vector s = sigmoid_of(g);
    const Vector slope = hn::Mul(s, hn::MulAdd(g, hn::Sub(one, s), one));
    const Vector dg = hn::Mul(hn::Mul(dhi, load(up + i, n)), slope);
    store(hn::Mul(dhi, hn::Mul(g, s)), dup + i, n);
    store(dg, dgate + i, n);
  });
}

}  // namespace troupe::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::models {

HWY_EXPORT(swiglu_range);
HWY_EXPORT(swiglu_backward_range);

namespace {
constexpr std::size_t kPartFloats = std::size_t{1} << 14;  ///< below it, waking a thread costs more than it saves
}  // namespace

void swiglu(ThreadPool& pool, std::span<float> h, std::span<const float> gate, std::span<const float> up) {
  pool.parallel_ranges(h.size(), kPartFloats,
                       [&](std::size_t begin, std::size_t end) { HWY_DYNAMIC_DISPATCH(swiglu_range)(h.data(), gate.data(), up.data(), begin, end); });
}

void swiglu_backward(ThreadPool& pool, std::span<float> dgate, std::span<float> dup, std::span<const float> dh, std::span<const float> gate,
                     std::span<const float> up) {
  pool.parallel_ranges(dh.size(), kPartFloats, [&](std::size_t begin, std::size_t end) {
    HWY_DYNAMIC_DISPATCH(swiglu_backward_range)(dgate.data(), dup.data(), dh.data(), gate.data(), up.data(), begin, end);
  });
}

void embedding_lookup(ThreadPool& pool, std::span<float> x, std::span<const std::uint32_t> tokens, std::span<const float> table, std::size_t dim) {
  pool.parallel_ranges(tokens.size(), std::max<std::size_t>(1, 4 * kPartFloats / std::max<std::size_t>(1, dim)), [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) std::copy_n(&table[tokens[row] * dim], dim, &x[row * dim]);
  });
}

}  // namespace troupe::models
#endif
