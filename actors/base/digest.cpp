#include "actors/base/digest.hpp"

#include <nmmintrin.h>
#include <xxhash.h>

#include <charconv>
#include <cstring>

#include "actors/base/check.hpp"

namespace troupe {

std::uint64_t digest64(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }
std::uint64_t digest64(std::string_view text) { return XXH3_64bits(text.data(), text.size()); }

std::array<std::byte, 16> Digest128::canonical() const {
  std::array<std::byte, 16> out{};
  for (std::size_t i = 0; i < 8; ++i) {
    out[i] = static_cast<std::byte>(high >> (56 - 8 * i));
    out[8 + i] = static_cast<std::byte>(low >> (56 - 8 * i));
  }
  return out;
}

std::string Digest128::hex() const {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(32);
  for (std::byte b : canonical()) {
    out += digits[std::to_integer<std::size_t>(b >> 4)];
    out += digits[std::to_integer<std::size_t>(b & std::byte{15})];
  }
  return out;
}

std::optional<Digest128> Digest128::from_hex(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  Digest128 digest;
  for (auto [half, at] : {std::pair{&digest.high, 0}, std::pair{&digest.low, 16}}) {
    const char* first = text.data() + at;
    auto [end, status] = std::from_chars(first, first + 16, *half, 16);
    if (status != std::errc{} || end != first + 16) return std::nullopt;
  }
  return digest;
}

Digest128 digest128(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {.high = hash.high64, .low = hash.low64};
}

struct Digester::State {
  XXH3_state_t* xxh = XXH3_createState();
  State() {
    TROUPE_CHECK(xxh != nullptr, "memory for a hash state");
    XXH3_128bits_reset(xxh);
  }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

Digester::Digester() : state_(std::make_unique<State>()) {}
Digester::~Digester() = default;
Digester::Digester(Digester&&) noexcept = default;
Digester& Digester::operator=(Digester&&) noexcept = default;

void Digester::add(std::span<const std::byte> bytes) { XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size()); }
void Digester::add(std::string_view text) { XXH3_128bits_update(state_->xxh, text.data(), text.size()); }

Digest128 Digester::digest() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  return {.high = hash.high64, .low = hash.low64};
}

// SSE4.2 has the instruction; every processor that this project runs on (x86-64-v3) has SSE4.2.
__attribute__((target("sse4.2"))) std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) {
  std::uint64_t crc = ~seed;
  const std::byte* p = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; p += 8, left -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, 8);
    crc = _mm_crc32_u64(crc, word);
  }
  auto crc32 = static_cast<std::uint32_t>(crc);
  for (; left > 0; ++p, --left) crc32 = _mm_crc32_u8(crc32, std::to_integer<std::uint8_t>(*p));
  return ~crc32;
}

}  // namespace troupe
