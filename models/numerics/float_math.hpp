#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace troupe::models::numerics {

/// Coefficients fitted with Sollya's fpminimax; the SIMD versions do the same operations in the same order.
namespace coefficients {

// exp(r) = 1 + (r + r² P(r)) on |r| ≤ 0.3475
inline constexpr float kLog2E = 0x1.715476p+0F;
inline constexpr float kRoundMagic = 0x1.8p+23F;  // adding it leaves the nearest integer in the low bits
inline constexpr float kLn2High = 0x1.62e400p-1F;
inline constexpr float kLn2Low = 0x1.7f7d1cp-20F;
inline constexpr float kExp[6] = {0x1p-1F, 0x1.555556p-3F, 0x1.5555p-5F, 0x1.110ff2p-7F, 0x1.6d30cep-10F, 0x1.a26768p-13F};
inline constexpr float kExpLowest = -110.0F;  // below: 0 after rounding
inline constexpr float kExpHighest = 100.0F;  // above: infinity after scaling

// log(1 + f) = f − f²/2 + f³ P(f) on √½ − 1 ≤ f ≤ √2 − 1
inline constexpr float kLog[9] = {0x1.555554p-2F,  -0x1.fffff8p-3F, 0x1.999d46p-3F,  -0x1.555c8cp-3F, 0x1.23d506p-3F,
                                  -0x1.fcbfc4p-4F, 0x1.de3896p-4F,  -0x1.d77b1ap-4F, 0x1.20373cp-4F};
inline constexpr std::uint32_t kSqrtHalfBits = 0x3f3504f3;  // √½

}  // namespace coefficients

/// e^x, below 1 ulp, denormals rounded once. exp(±0) = 1 exactly.
inline float exp(float x) {
  namespace c = coefficients;
  const float low = x < c::kExpLowest ? c::kExpLowest : x;
  const float clamped = low > c::kExpHighest ? c::kExpHighest : low;  // NaN passes both
  const float shifted = std::fma(clamped, c::kLog2E, c::kRoundMagic);
  const float k = shifted - c::kRoundMagic;
  const float r = std::fma(k, -c::kLn2Low, std::fma(k, -c::kLn2High, clamped));
  float p = c::kExp[5];
  for (int i = 4; i >= 0; --i) p = std::fma(p, r, c::kExp[i]);
  const float y = std::fma(r * r, p, r) + 1.0F;
  // Two exact powers of two, so that a denormal result rounds once.
  const auto whole = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(c::kRoundMagic));
  const std::int32_t half = whole >> 1;
  const auto power = [](std::int32_t e) { return std::bit_cast<float>(static_cast<std::uint32_t>(e + 127) << 23); };
  return (y * power(half)) * power(whole - half);
}

/// Natural logarithm, below 1 ulp; log(±0) = −∞, log of a negative number is NaN.
inline float log(float x) {
  namespace c = coefficients;
  const bool denormal = x < 0x1p-126F;
  const float normal = denormal ? x * 0x1p+23F : x;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(normal);
  const std::uint32_t offset = bits - c::kSqrtHalfBits;
  const auto exponent = static_cast<float>(static_cast<std::int32_t>(offset) >> 23) - (denormal ? 23.0F : 0.0F);
  const float f = std::bit_cast<float>((offset & 0x007fffffU) + c::kSqrtHalfBits) - 1.0F;
  float p = c::kLog[8];
  for (int i = 7; i >= 0; --i) p = std::fma(p, f, c::kLog[i]);
  const float f2 = f * f;
  const float tail = std::fma(exponent, c::kLn2Low, std::fma(f2 * f, p, f2 * -0.5F));
  const float y = std::fma(exponent, c::kLn2High, f + tail);
  const float special = x == 0.0F ? -INFINITY : (x < 0.0F ? NAN : y);
  return x < INFINITY ? special : x;  // +∞ and NaN are their own logarithms
}

/// 1 / (1 + e^−x)
inline float sigmoid(float x) { return 1.0F / (1.0F + exp(-x)); }

}  // namespace troupe::models::numerics
