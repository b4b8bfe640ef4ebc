#include "actors/base/philox.hpp"

namespace troupe {

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> c, std::array<std::uint32_t, 2> k) {
  constexpr std::uint64_t kMultiply0 = 0xD2511F53, kMultiply1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = kMultiply0 * c[0];
    const std::uint64_t p1 = kMultiply1 * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<std::uint32_t>(p0)};
    k[0] += kWeyl0;
    k[1] += kWeyl1;
  }
  return c;
}

std::array<std::uint32_t, 4> draw(const DrawKey& key) {
  // The purpose is spread over the key by an odd constant, so purposes never differ by a small seed.
  const std::uint64_t mixed = key.seed ^ (static_cast<std::uint64_t>(key.purpose) * 0x9E3779B97F4A7C15ULL);
  return philox({static_cast<std::uint32_t>(key.prompt), static_cast<std::uint32_t>(key.prompt >> 32), key.sample, key.position},
                {static_cast<std::uint32_t>(mixed), static_cast<std::uint32_t>(mixed >> 32)});
}

float uniform_float(std::uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }

double uniform_double(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (static_cast<std::uint64_t>(high) << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

std::uint32_t uniform_below(std::uint32_t word, std::uint32_t bound) {
  return static_cast<std::uint32_t>((static_cast<std::uint64_t>(word) * bound) >> 32);
}

}  // namespace troupe
