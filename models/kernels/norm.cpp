#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/norm.cpp"
#include <hwy/foreach_target.h>

#include "models/kernels/vectors.hpp"

#include "models/kernels/norm.hpp"

#include <algorithm>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace troupe::models::HWY_NAMESPACE {

/// One row; gives its inverse rms.
float norm_row(float* y, const float* x, const float* w, const SegmentCuts& cuts, float eps) {
  const Lanes d;
  const float squares = segmented_sum(cuts, [&](std::size_t i, std::size_t n, Vector sum) HWY_ATTR {
    const Vector value = load(x + i, n);
    return hn::MulAdd(value, value, sum);
  });
  const std::size_t dim = cuts.total();
  const float r = 1.0F / std::sqrt(squares / static_cast<float>(dim) + eps);
  const Vector each = hn::Set(d, r);
  for_vectors(0, dim, [&](std::size_t i, std::size_t n) HWY_ATTR { store(hn::Mul(hn::Mul(load(x + i, n), each), load(w + i, n)), y + i, n); });
  return r;
}

void norm_row_backward(float* dx, const float* dy, const float* x, const float* w, const SegmentCuts& cuts, float r) {
  const Lanes d;
  const float dot = segmented_sum(cuts, [&](std::size_t i, std::size_t n, Vector sum) HWY_ATTR {
    return hn::MulAdd(hn::Mul(load(dy + i, n), load(w + i, n)), load(x + i, n), sum);
  });
  const std::size_t dim = cuts.total();
  const float c = ((r * r) * r) / static_cast<float>(dim) * dot;
  const Vector cs = hn::Set(d, c), rs = hn::Set(d, r);
  for_vectors(0, dim, [&](std::size_t i, std::size_t n) HWY_ATTR {
    const Vector direct = hn::Mul(hn::Mul(load(dy + i, n), load(w + i, n)), rs);
    store(hn::NegMulAdd(cs, load(x + i, n), direct), dx + i, n);
  });
}

}  // namespace troupe::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::models {

HWY_EXPORT(norm_row);
HWY_EXPORT(norm_row_backward);

namespace {
constexpr std::size_t kPartFloats = std::size_t{1} << 15;  ///< below it, waking a thread costs more than it saves
}  // namespace

void rms_norm(ThreadPool& pool, std::span<float> y, std::span<const float> x, std::span<const float> w, float eps, std::span<float> inverse_rms) {
  const SegmentCuts cuts = SegmentCuts::of(w.size());
  pool.parallel_ranges(x.size() / w.size(), std::max<std::size_t>(1, kPartFloats / w.size()), [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const float r = HWY_DYNAMIC_DISPATCH(norm_row)(&y[row * w.size()], &x[row * w.size()], w.data(), cuts, eps);
      if (!inverse_rms.empty()) inverse_rms[row] = r;
    }
  });
}

void rms_norm_backward(ThreadPool& pool, std::span<float> dx, std::span<const float> dy, std::span<const float> x, std::span<const float> w,
                       std::span<const float> inverse_rms) {
  const SegmentCuts cuts = SegmentCuts::of(w.size());
  pool.parallel_ranges(x.size() / w.size(), std::max<std::size_t>(1, kPartFloats / w.size()), [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const std::size_t at = row * w.size();
      HWY_DYNAMIC_DISPATCH(norm_row_backward)(&dx[at], &dy[at], &x[at], w.data(), cuts, inverse_rms[row]);
    }
  });
}

}  // namespace troupe::models
#endif
