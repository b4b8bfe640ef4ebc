#include "models/numerics/double_math.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

// Compiled with -mfma: std::fma is one instruction here, and the same value elsewhere.
namespace troupe::models::numerics {

namespace {

constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr double kLn2High = 0x1.62e42fee00000p-1;  // 32 bits: exact times any exponent
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

/// 2^e for −1022 ≤ e ≤ 1023.
double power_of_two(std::int64_t e) { return std::bit_cast<double>(static_cast<std::uint64_t>(e + 1023) << 52); }

double scaled(double y, std::int64_t e) {
  const std::int64_t half = e >> 1;  // two exact steps, so that a denormal rounds once
  return (y * power_of_two(half)) * power_of_two(e - half);
}

/// A value as an unevaluated sum, |low| at most half an ulp of high.
struct Pair {
  double high;
  double low;
};

Pair two_sum_ordered(double a, double b) {  // |a| ≥ |b|
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

/// e^(high + low), |low| tiny.
double exp_pair(double high, double low) {
  if (!(high < 800.0)) return high > 0.0 ? INFINITY : high;  // +∞, NaN
  if (high < -800.0) return 0.0;
  const double k = std::rint(high * kLog2E);
  const double r0 = std::fma(k, -kLn2High, high);
  const double r1 = std::fma(k, -kLn2Low, low);
  const double r = r0 + r1;
  const double rest = r1 - (r - r0);
  // Taylor series of (e^r − 1 − r) / r² to r^11: the remainder is below 2^-57 on |r| ≤ ln2 / 2.
  static constexpr double kTerms[] = {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040,
                                      1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
  double p = kTerms[11];
  for (int i = 10; i >= 0; --i) p = std::fma(p, r, kTerms[i]);
  const double y = 1.0 + (r + std::fma(r * r, p, rest));
  return scaled(y, static_cast<std::int64_t>(k));
}

/// log of a positive finite number in two doubles, relative error about 2^-66.
Pair log_pair(double x) {
  double exponent = 0.0;
  if (x < 0x1p-1022) {
    x *= 0x1p+54;
    exponent = -54.0;
  }
  constexpr std::uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdULL;
  const std::uint64_t offset = std::bit_cast<std::uint64_t>(x) - kSqrtHalf;
  exponent += static_cast<double>(static_cast<std::int64_t>(offset) >> 52);
  const double m = std::bit_cast<double>((offset & 0x000fffffffffffffULL) + kSqrtHalf);
  // log m = 2 atanh(s), s = f / (2 + f); s in two doubles.
  const double f = m - 1.0;
  const Pair d = two_sum_ordered(2.0, f);
  const double s = f / d.high;
  const double s_low = (std::fma(-s, d.high, f) - s * d.low) / d.high;
  const double s2 = s * s;
  double p = 2.0 / 25;
  for (int odd = 23; odd >= 3; odd -= 2) p = std::fma(p, s2, 2.0 / odd);  // 2/3 s² + 2/5 s⁴ + …
  const double series = p * s2 * s;
  const Pair leading = two_sum_ordered(2.0 * s, std::fma(2.0, s_low, series));
  const double base = exponent * kLn2High;
  if (exponent == 0.0) return leading;
  const Pair sum = two_sum_ordered(base, leading.high);
  return two_sum_ordered(sum.high, sum.low + std::fma(exponent, kLn2Low, leading.low));
}

/// x − n π/2 with n the nearest integer; the quadrant is n mod 4.
double reduced(double x, std::int64_t& quadrant) {
  const double n = std::rint(x * 0x1.45f306dc9c883p-1);
  quadrant = static_cast<std::int64_t>(n) & 3;
  const double first = std::fma(n, -0x1.921fb54442d18p+0, x);
  // π/2 in three doubles: errors of the later two matter only near a multiple of π/2.
  return std::fma(n, 0x1.f1976b7ed8fbcp-110, std::fma(n, -0x1.1a62633145c07p-54, first));
}

double sin_polynomial(double r) {
  const double r2 = r * r;
  double p = 0.0;
  double p_terms[] = {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
  for (int i = 7; i >= 0; --i) p = std::fma(p, r2, p_terms[i]);
  return std::fma(r * r2, p, r);
}

double cos_polynomial(double r) {
  const double r2 = r * r;
  double p = 0.0;
  double p_terms[] = {1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000, -1.0 / 6402373705728000};
  for (int i = 7; i >= 0; --i) p = std::fma(p, r2, p_terms[i]);
  const double half = 0.5 * r2;
  const double rounded = 1.0 - half;
  return rounded + std::fma(r2 * r2, p, (1.0 - rounded) - half);
}

/// sin(x + quarter π/2)
double sin_shifted(double x, std::int64_t quarter) {
  if (!(std::fabs(x) < 0x1p+30)) return NAN;
  std::int64_t quadrant = 0;
  const double r = reduced(x, quadrant);
  quadrant = (quadrant + quarter) & 3;
  const double y = (quadrant & 1) != 0 ? cos_polynomial(r) : sin_polynomial(r);
  return (quadrant & 2) != 0 ? -y : y;
}

}  // namespace

double exp(double x) { return exp_pair(x, 0.0); }

double log(double x) {
  if (x == 0.0) return -INFINITY;
  if (x < 0.0) return NAN;
  if (!(x < INFINITY)) return x;
  return log_pair(x).high;
}

double pow(double x, double y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (x < 0.0) return NAN;
  if (x == 0.0) return y > 0.0 ? 0.0 : (y < 0.0 ? INFINITY : y);
  if (!(x < INFINITY) || !(std::fabs(y) < INFINITY)) return exp(y * log(x));
  const Pair l = log_pair(x);
  const double high = y * l.high;
  const double low = std::fma(y, l.high, -high) + y * l.low;
  return exp_pair(high, std::fabs(high) < 800.0 ? low : 0.0);
}

double sin(double x) { return x == 0.0 ? x : sin_shifted(x, 0); }
double cos(double x) { return sin_shifted(x, 1); }

double tanh(double x) {
  const double a = std::fabs(x);
  double y = 1.0;
  if (a < 0.25) {
    // Continued fraction of tanh, nine levels: below 2^-60 relative on |x| < 1/4.
    const double a2 = a * a;
    double c = 17.0;
    for (int odd = 15; odd >= 1; odd -= 2) c = odd + a2 / c;
    y = a / c;
  } else if (a < 22.0) {
    y = 1.0 - 2.0 / (exp(2.0 * a) + 1.0);
  } else if (!(a <= INFINITY)) {
    return x;
  }
  return x < 0.0 ? -y : (x == 0.0 ? x : y);
}

}  // namespace troupe::models::numerics
