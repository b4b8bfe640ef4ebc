#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/vocabulary.cpp"
#include <hwy/foreach_target.h>

#include "models/kernels/vectors.hpp"

#include "models/kernels/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "models/numerics/double_math.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::models::HWY_NAMESPACE {

/// logit / temperature. A division by 1 changes no bit, and is left out.
struct Scaled {
  const float* logits;
  float temperature;

  HWY_INLINE Vector operator()(std::size_t i, std::size_t n) const {
    const Vector z = load(logits + i, n);
    return temperature == 1.0F ? z : hn::Div(z, hn::Set(Lanes(), temperature));
  }
};

HWY_INLINE float largest(const Scaled& z, std::size_t begin, std::size_t end) {
  const Lanes d;
  Vector highest = hn::Set(d, z.logits[begin] / z.temperature);
  for_vectors(begin, end, [&](std::size_t i, std::size_t n) HWY_ATTR {
    const Vector value = z(i, n);
    const auto is_higher = hn::And(hn::Gt(value, highest), hn::FirstN(d, n));
    highest = hn::IfThenElse(is_higher, value, highest);
  });
  HWY_ALIGN float lanes[kLanes];
  hn::Store(highest, d, lanes);
  float maximum = lanes[0];
  for (const float lane : lanes) maximum = lane > maximum ? lane : maximum;
  return maximum + 0.0F;  // −0 becomes +0: then the order of comparisons cannot show
}

LogSumExp segment_log_sum_exp(const float* logits, std::size_t begin, std::size_t end, float temperature) {
  const Scaled z{logits, temperature};
  LogSumExp state;
  state.maximum = largest(z, begin, end);
  const Vector maximum = hn::Set(Lanes(), state.maximum);
  // One exp serves both sums: the second's chain runs beside the first's in the lanes of its own partials.
  Vector weighted[kPartialVectors];
  for (Vector& partials : weighted) partials = hn::Zero(Lanes());
  state.sum = interleaved_sum(begin, end, [&](std::size_t i, std::size_t n, Vector sum) HWY_ATTR {
    const Vector shifted = hn::Sub(z(i, n), maximum);
    const Vector e = exp_of(shifted);
    Vector& partials = weighted[(i - begin) / kLanes % kPartialVectors];
    const Vector next = hn::MulAdd(e, shifted, partials);
    partials = n >= kLanes ? next : hn::IfThenElse(hn::FirstN(Lanes(), n), next, partials);
    return hn::Add(sum, e);
  });
  state.weighted = partials_sum(weighted[0], weighted[kPartialVectors - 1]);
  return state;
}

/// dlogits of one row but for the target: c (0 − p).
void row_gradient(float* dlogits, const float* logits, std::size_t width, float temperature, float maximum, float sum, float c) {
  const Lanes d;
  const Scaled z{logits, temperature};
  const Vector m = hn::Set(d, maximum), s = hn::Set(d, sum), factor = hn::Set(d, c);
  for_vectors(0, width, [&](std::size_t i, std::size_t n) HWY_ATTR {
    const Vector p = hn::Div(exp_of(hn::Sub(z(i, n), m)), s);
    store(hn::Mul(factor, hn::Sub(hn::Zero(d), p)), dlogits + i, n);
  });
}

void row_entropy_gradient(float* dlogits, const float* logits, std::size_t width, float temperature, const LogSumExp& whole, float c, float shift) {
  const Lanes d;
  const Scaled scaled{logits, temperature};
  const Vector m = hn::Set(d, whole.maximum), s = hn::Set(d, whole.sum), factor = hn::Set(d, c), shifts = hn::Set(d, shift);
  for_vectors(0, width, [&](std::size_t i, std::size_t n) HWY_ATTR {
    const Vector z = hn::Sub(scaled(i, n), m);
    const Vector p = hn::Div(exp_of(z), s);
    const Vector change = hn::Mul(factor, hn::Mul(p, hn::Add(z, shifts)));
    store(hn::Sub(load(dlogits + i, n), change), dlogits + i, n);
  });
}

}  // namespace troupe::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::models {

HWY_EXPORT(segment_log_sum_exp);
HWY_EXPORT(row_gradient);
HWY_EXPORT(row_entropy_gradient);

namespace {

constexpr std::size_t kPartLogits = std::size_t{1} << 14;  ///< below it, waking a thread costs more than it saves

LogSumExp tree(std::span<const LogSumExp> parts) {
  if (parts.size() == 1) return parts[0];
  return combine(tree(parts.first(parts.size() / 2)), tree(parts.subspan(parts.size() / 2)));
}

float scaled(float logit, float temperature) { return logit / temperature; }

/// body(row) for every row, several threads where rows are many or wide.
template <class Body>
void for_rows(ThreadPool& pool, std::size_t rows, std::size_t width, Body body) {
  pool.parallel_ranges(rows, std::max<std::size_t>(1, kPartLogits / std::max<std::size_t>(1, width)), [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) body(row);
  });
}

}  // namespace

LogSumExp combine(const LogSumExp& left, const LogSumExp& right) {
  if (left.sum == 0.0F) return right;
  if (right.sum == 0.0F) return left;
  const float maximum = left.maximum > right.maximum ? left.maximum : right.maximum;
  const float dl = left.maximum - maximum, dr = right.maximum - maximum;
  const float el = numerics::exp(dl), er = numerics::exp(dr);
  LogSumExp both;
  both.maximum = maximum;
  both.sum = std::fma(right.sum, er, left.sum * el);
  both.weighted = std::fma(std::fma(right.sum, dr, right.weighted), er, std::fma(left.sum, dl, left.weighted) * el);
  return both;
}

LogSumExp combine_shards(std::span<const LogSumExp> shards) { return tree(shards); }

void log_sum_exp(ThreadPool& pool, std::span<LogSumExp> states, std::span<const float> logits, const SegmentCuts& cuts, float temperature) {
  const std::size_t width = cuts.total(), rows = states.size();
  // A decode step has few rows: then the segments are shared out too.
  std::vector<LogSumExp> parts(rows * numerics::kSegments);
  for_rows(pool, rows * cuts.held(), width / numerics::kSegments, [&](std::size_t part) {
    const std::size_t row = part / cuts.held(), s = cuts.first + part % cuts.held();
    if (cuts.size(s) == 0) return;
    parts[row * numerics::kSegments + s] =
        HWY_DYNAMIC_DISPATCH(segment_log_sum_exp)(&logits[row * width], cuts.offset[s], cuts.offset[s + 1], temperature);
  });
  for (std::size_t row = 0; row < rows; ++row) {
    states[row] = tree(std::span<const LogSumExp>(parts).subspan(row * numerics::kSegments + cuts.first, cuts.held()));
  }
}

double log_probability(float logit, float temperature, const LogSumExp& whole) {
  return (static_cast<double>(scaled(logit, temperature)) - static_cast<double>(whole.maximum)) - numerics::log(static_cast<double>(whole.sum));
}

double entropy(const LogSumExp& whole) {
  return numerics::log(static_cast<double>(whole.sum)) - static_cast<double>(whole.weighted) / static_cast<double>(whole.sum);
}

void log_probability_gradient(ThreadPool& pool, std::span<float> dlogits, std::span<const float> logits, std::span<const LogSumExp> whole,
                              std::span<const std::uint32_t> targets, std::span<const float> coefficients, std::size_t first, float temperature) {
  if (whole.empty()) return;
  const std::size_t width = logits.size() / whole.size();
  for_rows(pool, whole.size(), width, [&](std::size_t row) {
    float* to = &dlogits[row * width];
    const float* from = &logits[row * width];
    if (coefficients[row] == 0.0F) return void(std::fill_n(to, width, 0.0F));
    const float c = coefficients[row] / temperature;
    const bool is_here = targets[row] >= first && targets[row] - first < width;
    const std::size_t target = is_here ? targets[row] - first : 0;
    // Before the row: dlogits may alias logits.
    const float p = numerics::exp(scaled(from[target], temperature) - whole[row].maximum) / whole[row].sum;
    HWY_DYNAMIC_DISPATCH(row_gradient)(to, from, width, temperature, whole[row].maximum, whole[row].sum, c);
    if (is_here) to[target] = c * (1.0F - p);
  });
}

void add_entropy_gradient(ThreadPool& pool, std::span<float> dlogits, std::span<const float> logits, std::span<const LogSumExp> whole,
                          std::span<const float> coefficients, float temperature) {
  if (whole.empty()) return;
  const std::size_t width = logits.size() / whole.size();
  for_rows(pool, whole.size(), width, [&](std::size_t row) {
    if (coefficients[row] == 0.0F) return;
    const float c = coefficients[row] / temperature;
    const auto shift = static_cast<float>(entropy(whole[row]) - numerics::log(static_cast<double>(whole[row].sum)));
    HWY_DYNAMIC_DISPATCH(row_entropy_gradient)(&dlogits[row * width], &logits[row * width], width, temperature, whole[row], c, shift);
  });
}

}  // namespace troupe::models
#endif
