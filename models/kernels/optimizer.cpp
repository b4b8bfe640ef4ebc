#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/optimizer.cpp"
#include <hwy/foreach_target.h>

#include "models/kernels/vectors.hpp"

#include "models/kernels/optimizer.hpp"

#include <algorithm>
#include <array>

HWY_BEFORE_NAMESPACE();
namespace troupe::models::HWY_NAMESPACE {

using Doubles = hn::ScalableTag<double>;
using Double = hn::Vec<Doubles>;
using HalfLanes = hn::Rebind<float, Doubles>;
constexpr std::size_t kDoubles = kLanes / 2;

/// The first n of a vector of floats as doubles; the others are +0.
HWY_INLINE Double load_doubles(const float* from, std::size_t n) {
  const HalfLanes d;
  const auto floats = n >= kDoubles ? hn::LoadU(d, from) : hn::MaskedLoad(hn::FirstN(d, n), d, from);
  return hn::PromoteTo(Doubles(), floats);
}

HWY_INLINE void store_rounded(Double value, float* to, std::size_t n) {
  const HalfLanes d;
  const auto floats = hn::DemoteTo(d, value);
  if (n >= kDoubles) {
    hn::StoreU(floats, d, to);
  } else {
    hn::BlendedStore(floats, hn::FirstN(d, n), d, to);
  }
}

void adamw_range(float* p, float* m, float* v, const float* g, std::size_t begin, std::size_t end, const AdamW& step) {
  const Doubles d;
  const Double keep = hn::Set(d, 1.0 - step.learning_rate * step.weight_decay), scale = hn::Set(d, step.gradient_scale);
  const Double beta1 = hn::Set(d, step.beta1), rest1 = hn::Set(d, 1.0 - step.beta1), correction1 = hn::Set(d, step.correction1);
  const Double beta2 = hn::Set(d, step.beta2), rest2 = hn::Set(d, 1.0 - step.beta2), correction2 = hn::Set(d, step.correction2);
  const Double rate = hn::Set(d, step.learning_rate), eps = hn::Set(d, step.eps);
  for (std::size_t i = begin; i < end; i += kDoubles) {
    const std::size_t n = std::min(kDoubles, end - i);
    const Double gradient = hn::Mul(load_doubles(g + i, n), scale);
    const Double mean = hn::MulAdd(beta1, load_doubles(m + i, n), hn::Mul(rest1, gradient));
    const Double square = hn::MulAdd(beta2, load_doubles(v + i, n), hn::Mul(hn::Mul(rest2, gradient), gradient));
    const Double denominator = hn::Add(hn::Sqrt(hn::Div(square, correction2)), eps);
    const Double change = hn::Div(hn::Mul(rate, hn::Div(mean, correction1)), denominator);
    store_rounded(hn::MulSub(load_doubles(p + i, n), keep, change), p + i, n);
    store_rounded(mean, m + i, n);
    store_rounded(square, v + i, n);
  }
}

/// The squares of [begin, end): 16 partials in as many vectors as they take.
HWY_INLINE double squares_of(const float* g, std::size_t begin, std::size_t end) {
  const Doubles d;
  HWY_ALIGN double partials[numerics::kPartials];
  for (std::size_t lane = 0; lane < numerics::kPartials; lane += kDoubles) {
    Double sum = hn::Zero(d);
    for (std::size_t i = begin + lane; i < end; i += numerics::kPartials) {
      // Beyond the end +0 · +0 is added to a partial that is never −0.
      const Double value = load_doubles(g + i, end - i);
      sum = hn::MulAdd(value, value, sum);
    }
    hn::Store(sum, d, partials + lane);
  }
  return numerics::partials_tree(std::span<const double, numerics::kPartials>(partials));
}

double row_square(const float* g, const SegmentCuts& cuts) {
  std::array<double, numerics::kSegments> sums{};
  for (std::size_t s = cuts.first; s < cuts.last; ++s) sums[s] = squares_of(g, cuts.offset[s], cuts.offset[s + 1]);
  return numerics::segment_tree(std::span<const double>(sums).subspan(cuts.first, cuts.held()));
}

}  // namespace troupe::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::models {

HWY_EXPORT(adamw_range);
HWY_EXPORT(row_square);

namespace {
constexpr std::size_t kPartFloats = std::size_t{1} << 15;  ///< below it, waking a thread costs more than it saves
}  // namespace

void adamw_update(ThreadPool& pool, std::span<float> p, std::span<float> m, std::span<float> v, std::span<const float> g, const AdamW& step) {
  pool.parallel_ranges(p.size(), kPartFloats, [&](std::size_t begin, std::size_t end) {
    HWY_DYNAMIC_DISPATCH(adamw_range)(p.data(), m.data(), v.data(), g.data(), begin, end, step);
  });
}

void row_squares(ThreadPool& pool, std::span<double> squares, std::span<const float> g, const SegmentCuts& cuts) {
  const std::size_t width = cuts.total();
  pool.parallel_ranges(squares.size(), std::max<std::size_t>(1, kPartFloats / std::max<std::size_t>(1, width)), [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) squares[row] = HWY_DYNAMIC_DISPATCH(row_square)(g.data() + row * width, cuts);
  });
}

double fold_rows(std::span<const double> values, const SegmentCuts& cuts) {
  std::array<double, numerics::kSegments> sums{};
  for (std::size_t s = cuts.first; s < cuts.last; ++s) {
    for (std::size_t row = cuts.offset[s]; row < cuts.offset[s + 1]; ++row) sums[s] += values[row];
  }
  return numerics::segment_tree(std::span<const double>(sums).subspan(cuts.first, cuts.held()));
}

}  // namespace troupe::models
#endif
