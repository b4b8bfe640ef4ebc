#include "models/tensor.hpp"

#include <array>
#include <bit>
#include <cmath>

namespace troupe::models {

std::string_view to_string(Dtype dtype) { return dtype == Dtype::bfloat16 ? "BF16" : "F32"; }
std::size_t bytes_of(Dtype dtype) { return dtype == Dtype::bfloat16 ? 2 : 4; }

std::uint16_t to_bfloat16(float value) {
  if (std::isnan(value)) return 0x7FC0;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

float from_bfloat16(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U); }

float from_float16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1FU;
  const std::uint32_t mantissa = bits & 0x3FFU;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000U | (mantissa << 13U));
  if (exponent != 0) return std::bit_cast<float>(sign | ((exponent + 112U) << 23U) | (mantissa << 13U));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;  // subnormals, exact
  return sign != 0 ? -magnitude : magnitude;
}

}  // namespace troupe::models
