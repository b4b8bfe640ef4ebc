#pragma once

#include <array>
#include <cstdint>

#include "actors/link.hpp"

namespace troupe::transport {

/// What a frame is. Format: frame.md. Fixed numbers.
enum class FrameKind : std::uint8_t {
  envelope = 0,
  heartbeat = 1,  ///< the sender lives; nothing else is said
  goodbye = 2,    ///< the last frame: the sender leaves in good order
};

inline constexpr std::size_t kFrameHeaderBytes = 72;
inline constexpr std::uint8_t kFrameVersion = 1;
inline constexpr std::uint32_t kPayloadBytesMax = std::uint32_t{1} << 31;

struct FrameHeader {
  FrameKind frame = FrameKind::envelope;
  EnvelopeKind kind = EnvelopeKind::tell;
  bool has_payload_crc = false;
  std::uint32_t payload_bytes = 0;
  std::uint32_t payload_crc = 0;  ///< CRC-32C; 0 when there is none
  ActorId to{};
  ActorRef sender;
  Origin origin;
  std::uint64_t correlation = 0;
  TypeId type{};
};

using FrameHeaderBytes = std::array<std::byte, kFrameHeaderBytes>;

/// The header to send before the envelope's payload. Precondition: payload <= kPayloadBytesMax.
/// A payload CRC pays where a network lies between; within a host bytes go from memory to memory.
FrameHeader header_of(const WireEnvelope& envelope, bool with_payload_crc);

FrameHeaderBytes encode_header(const FrameHeader& header);

/// Reads the first kFrameHeaderBytes. Errors: corrupt for what encode_header never writes and for payloads above the limit.
Result<FrameHeader> parse_header(BytesView bytes, std::uint32_t payload_bytes_max = kPayloadBytesMax);

}  // namespace troupe::transport
