#pragma once

#include <cstdint>
#include <string_view>

#include "actors/base/bytes.hpp"

// The bytes of a journal; journal.md says them in prose, with a worked example.
namespace troupe::record {

inline constexpr std::string_view kJournalMagic = "TROUPEJ1";
inline constexpr std::uint32_t kJournalFormat = 2;
inline constexpr std::size_t kFrameHeaderBytes = 8;
inline constexpr std::size_t kFrameBodyMax = (1U << 24U) - 1;
inline constexpr std::size_t kPayloadPieceBytes = 1U << 22U;  ///< longer payloads take several entries
inline constexpr std::uint8_t kKindMask = 0x0F;               ///< of a delivery's kind byte
inline constexpr std::uint8_t kHasPayload = 0x80;

/// Fixed numbers; append only.
enum class EntryType : std::uint8_t {
  header = 1,    ///< format, attempt, rank, run id
  actor = 2,     ///< index, id64
  spawned = 3,   ///< actor, name, class, gang, rank
  stopped = 4,   ///< actor, number, error code, detail
  name = 5,      ///< index, id64 (0: a note's or a state's name), text
  delivery = 6,  ///< actor, number, sender, sequence, kind8, name, sends, zigzag microseconds, digest64, bytes, fields 32 …
  clock = 7,     ///< actor, number, zigzag nanoseconds
  note = 8,      ///< actor, number, name, digest64, bytes, fields 32 …
  state = 9,     ///< as a note
  payload = 10,  ///< sender, sequence, bytes in all, offset, bytes …
  step = 11,     ///< step
  end = 12,      ///< error code, reason
  begins = 13,   ///< actor, number, training step
  ran = 14,      ///< actor, number, microseconds
  restarted = 15,  ///< actor, number, error code, detail
};

/// CRC-8 (polynomial 0x07, start 0xFF) of a frame's three length bytes: any change within one byte of the header's first four is found.
constexpr std::uint8_t length_check(std::uint32_t length) {
  std::uint8_t crc = 0xFF;
  for (unsigned shift = 0; shift < 24; shift += 8) {
    crc = static_cast<std::uint8_t>(crc ^ (length >> shift));
    for (int bit = 0; bit < 8; ++bit) crc = static_cast<std::uint8_t>((crc & 0x80) != 0 ? (crc << 1) ^ 0x07 : crc << 1);
  }
  return crc;
}

/// Appends frames to a buffer: begin, the entry's fields, end.
class FrameWriter {
 public:
  explicit FrameWriter(Bytes& out) : out_(out) {}

  void begin(EntryType type);
  void end();

  void byte(std::uint8_t value) { out_.push_back(static_cast<std::byte>(value)); }
  void varint(std::uint64_t value) {
    while (value >= 128) {
      byte(static_cast<std::uint8_t>(value | 128));
      value >>= 7;
    }
    byte(static_cast<std::uint8_t>(value));
  }
  void u32(std::uint32_t value) { bytes({reinterpret_cast<const std::byte*>(&value), sizeof value}); }
  void u64(std::uint64_t value) { bytes({reinterpret_cast<const std::byte*>(&value), sizeof value}); }
  void bytes(BytesView value) { out_.insert(out_.end(), value.begin(), value.end()); }
  void text(std::string_view value) {
    varint(value.size());
    bytes(std::as_bytes(std::span(value)));
  }

 private:
  Bytes& out_;
  std::size_t start_ = 0;
};

}  // namespace troupe::record
