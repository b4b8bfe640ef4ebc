// Vectors of one instruction set: parts of rows, the contract's reductions and functions. Included by sources that Highway compiles once a
// target, hence no ordinary include guard: the toggle lets each pass include it once.
#if defined(TROUPE_KERNELS_VECTORS_TOGGLE) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_VECTORS_TOGGLE
#undef TROUPE_KERNELS_VECTORS_TOGGLE
#else
#define TROUPE_KERNELS_VECTORS_TOGGLE
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "models/kernels/segments.hpp"
#include "models/numerics/float_math.hpp"
#include "models/numerics/trees.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::models::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

static_assert(HWY_NATIVE_FMA, "the contract's fma is one instruction on every target");

using Lanes = hn::ScalableTag<float>;
using Vector = hn::Vec<Lanes>;
constexpr std::size_t kLanes = HWY_LANES(float);

/// The first n of a vector's lanes (all of them from kLanes on); the others are +0 and their memory is not touched.
HWY_INLINE Vector load(const float* from, std::size_t n) {
  const Lanes d;
  return n >= kLanes ? hn::LoadU(d, from) : hn::MaskedLoad(hn::FirstN(d, n), d, from);
}

HWY_INLINE void store(Vector value, float* to, std::size_t n) {
  const Lanes d;
  if (n >= kLanes) {
    hn::StoreU(value, d, to);
  } else {
    hn::BlendedStore(value, hn::FirstN(d, n), d, to);
  }
}

/// Calls body(i, n) for the vectors of [begin, end): n lanes from i, fewer than kLanes only in the last.
template <class Body>
HWY_INLINE void for_vectors(std::size_t begin, std::size_t end, Body body) {
  std::size_t i = begin;
  for (; i + kLanes <= end; i += kLanes) body(i, kLanes);
  if (i < end) body(i, end - i);
}

/// numerics::exp, operation by operation.
HWY_INLINE Vector exp_of(Vector x) {
  namespace c = numerics::coefficients;
  const Lanes d;
  const hn::RebindToSigned<Lanes> di;
  const Vector lowest = hn::Set(d, c::kExpLowest), highest = hn::Set(d, c::kExpHighest), magic = hn::Set(d, c::kRoundMagic);
  const Vector low = hn::IfThenElse(hn::Lt(x, lowest), lowest, x);
  const Vector clamped = hn::IfThenElse(hn::Gt(low, highest), highest, low);
  const Vector shifted = hn::MulAdd(clamped, hn::Set(d, c::kLog2E), magic);
  const Vector k = hn::Sub(shifted, magic);
  const Vector r = hn::NegMulAdd(k, hn::Set(d, c::kLn2Low), hn::NegMulAdd(k, hn::Set(d, c::kLn2High), clamped));
  Vector p = hn::Set(d, c::kExp[5]);
  for (int i = 4; i >= 0; --i) p = hn::MulAdd(p, r, hn::Set(d, c::kExp[i]));
  const Vector y = hn::Add(hn::MulAdd(hn::Mul(r, r), p, r), hn::Set(d, 1.0F));
  const auto whole = hn::Sub(hn::BitCast(di, shifted), hn::BitCast(di, magic));
  const auto half = hn::ShiftRight<1>(whole);
  const auto bias = hn::Set(di, 127);
  const auto low_power = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const auto high_power = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(whole, half), bias)));
  return hn::Mul(hn::Mul(y, low_power), high_power);
}

/// numerics::sigmoid.
HWY_INLINE Vector sigmoid_of(Vector x) {
  const Vector one = hn::Set(Lanes(), 1.0F);
  return hn::Div(one, hn::Add(one, exp_of(hn::Neg(x))));
}

/// The 16 partial sums of a reduction fill one vector, or the low and the high half of them one each.
constexpr std::size_t kPartialVectors = numerics::kPartials / kLanes;

HWY_INLINE float partials_sum(Vector low, [[maybe_unused]] Vector high) {
  HWY_ALIGN float lanes[numerics::kPartials];
  hn::Store(low, Lanes(), lanes);
  if constexpr (kPartialVectors == 2) hn::Store(high, Lanes(), lanes + kLanes);
  const hn::CappedTag<float, 8> d8;
  const hn::CappedTag<float, 4> d4;
  const auto eight = hn::Add(hn::Load(d8, lanes), hn::Load(d8, lanes + 8));
  const auto four = hn::Add(hn::LowerHalf(d4, eight), hn::UpperHalf(d4, eight));
  hn::Store(four, d4, lanes);
  return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
}

/// interleaved_sum (reductions.hpp) by vectors: next(i, n, partials) gives the partials with the n elements from i in its first n lanes.
template <class Next>
HWY_INLINE float interleaved_sum(std::size_t begin, std::size_t end, Next next) {
  const Lanes d;
  Vector low = hn::Zero(d), high = hn::Zero(d);
  std::size_t i = begin;
  for (; i + numerics::kPartials <= end; i += numerics::kPartials) {
    low = next(i, kLanes, low);
    if constexpr (kPartialVectors == 2) high = next(i + kLanes, kLanes, high);
  }
  // Lanes beyond the end keep their bits: adding +0 would turn a −0.
  const auto some = [&](std::size_t from, Vector sum) HWY_ATTR {
    const std::size_t n = std::min(kLanes, end - from);
    return hn::IfThenElse(hn::FirstN(d, n), next(from, n, sum), sum);
  };
  if (i < end) low = some(i, low);
  if (kPartialVectors == 2 && i + kLanes < end) high = some(i + kLanes, high);
  return partials_sum(low, high);
}

/// segmented_sum (reductions.hpp) by vectors.
template <class Next>
HWY_INLINE float segmented_sum(const SegmentCuts& cuts, Next next) {
  float sums[numerics::kSegments] = {};
  for (std::size_t s = cuts.first; s < cuts.last; ++s) sums[s] = interleaved_sum(cuts.offset[s], cuts.offset[s + 1], next);
  return numerics::segment_tree(std::span<const float>(sums).subspan(cuts.first, cuts.held()));
}

}  // namespace troupe::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
