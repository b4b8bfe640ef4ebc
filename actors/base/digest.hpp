#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace troupe {

/// XXH3 of 64 bits, for messages and logical names.
std::uint64_t digest64(std::span<const std::byte> bytes);
std::uint64_t digest64(std::string_view text);

/// XXH3 of 128 bits, for weights, state and files; prints as xxh128sum does.
struct Digest128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  auto operator<=>(const Digest128&) const = default;
  std::array<std::byte, 16> canonical() const;  ///< big-endian, high half first (XXH128_canonical_t)
  std::string hex() const;                      ///< 32 lower-case digits

  static std::optional<Digest128> from_hex(std::string_view text);

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& high& low;
  }
};

Digest128 digest128(std::span<const std::byte> bytes);

/// Digest128 of bytes that arrive in pieces; the pieces' cuts do not matter.
class Digester {
 public:
  Digester();
  ~Digester();
  Digester(Digester&&) noexcept;
  Digester& operator=(Digester&&) noexcept;

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text);
  Digest128 digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// CRC-32C (Castagnoli), for frames and journals. `seed` continues a sum: crc32c(b, crc32c(a)) == crc32c(ab).
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);

}  // namespace troupe
