#include "transport/frame.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "actors/base/check.hpp"
#include "actors/base/digest.hpp"

namespace troupe::transport {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are written as the machine holds them");

constexpr std::uint32_t kMagic = 0x46505254;  // "TRPF"
constexpr std::uint8_t kFlagPayloadCrc = 1;
constexpr std::size_t kCrcAt = kFrameHeaderBytes - 4;

class Out {
 public:
  template <class T>
  Out& operator<<(T value) {
    std::memcpy(bytes_.data() + at_, &value, sizeof(T));
    at_ += sizeof(T);
    return *this;
  }
  FrameHeaderBytes finish() {
    *this << crc32c(BytesView(bytes_).first(kCrcAt));
    return bytes_;
  }

 private:
  FrameHeaderBytes bytes_{};
  std::size_t at_ = 0;
};

class In {
 public:
  explicit In(BytesView bytes) : bytes_(bytes) {}
  template <class T>
  In& operator>>(T& value) {
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return *this;
  }

 private:
  BytesView bytes_;
  std::size_t at_ = 0;
};

Error corrupt(std::string_view what, std::uint64_t want, std::uint64_t got) {
  return Error{ErrorCode::corrupt, fmt::format("frame header: {}: want {}, got {}", what, want, got)};
}

bool is_blank(const FrameHeader& header) {
  return header.kind == EnvelopeKind::tell && !header.has_payload_crc && header.payload_bytes == 0 && header.to == ActorId{} &&
         header.sender.id == ActorId{} && header.sender.rank == kRankUnknown && header.origin == Origin{} && header.correlation == 0 &&
         header.type == TypeId{};
}

}  // namespace

FrameHeader header_of(const WireEnvelope& envelope, bool with_payload_crc) {
  TROUPE_CHECK(envelope.payload.size() <= kPayloadBytesMax, "callers refuse payloads above the limit");
  return {.frame = FrameKind::envelope,
          .kind = envelope.kind,
          .has_payload_crc = with_payload_crc,
          .payload_bytes = static_cast<std::uint32_t>(envelope.payload.size()),
          .payload_crc = with_payload_crc ? crc32c(envelope.payload) : 0,
          .to = envelope.to,
          .sender = envelope.sender,
          .origin = envelope.origin,
          .correlation = envelope.correlation,
          .type = envelope.type};
}

FrameHeaderBytes encode_header(const FrameHeader& header) {
  Out out;
  out << kMagic << kFrameVersion << header.frame << header.kind << (header.has_payload_crc ? kFlagPayloadCrc : std::uint8_t{0});
  out << header.payload_bytes << header.payload_crc << header.to << header.sender.id << header.origin.sender << header.origin.sequence;
  out << header.correlation << header.type << header.sender.rank;
  return out.finish();
}

Result<FrameHeader> parse_header(BytesView bytes, std::uint32_t payload_bytes_max) {
  if (bytes.size() < kFrameHeaderBytes) return corrupt("bytes", kFrameHeaderBytes, bytes.size());
  std::uint32_t magic = 0;
  std::uint32_t crc = 0;
  std::uint8_t version = 0;
  std::uint8_t frame = 0;
  std::uint8_t kind = 0;
  std::uint8_t flags = 0;
  FrameHeader header;
  In in(bytes);
  in >> magic >> version >> frame >> kind >> flags >> header.payload_bytes >> header.payload_crc >> header.to >> header.sender.id;
  in >> header.origin.sender >> header.origin.sequence >> header.correlation >> header.type >> header.sender.rank >> crc;

  if (magic != kMagic) return corrupt("magic", kMagic, magic);
  if (version != kFrameVersion) return corrupt("version", kFrameVersion, version);
  if (const std::uint32_t sum = crc32c(bytes.first(kCrcAt)); sum != crc) return corrupt("CRC-32C", sum, crc);
  if (frame > static_cast<std::uint8_t>(FrameKind::goodbye)) return corrupt("frame kind at most", 2, frame);
  if (kind > static_cast<std::uint8_t>(EnvelopeKind::system)) return corrupt("envelope kind at most", 7, kind);
  if (flags > kFlagPayloadCrc) return corrupt("flags at most", kFlagPayloadCrc, flags);
  if (header.payload_bytes > payload_bytes_max) return corrupt("payload bytes at most", payload_bytes_max, header.payload_bytes);
  header.frame = static_cast<FrameKind>(frame);
  header.kind = static_cast<EnvelopeKind>(kind);
  header.has_payload_crc = flags == kFlagPayloadCrc;
  if (!header.has_payload_crc && header.payload_crc != 0) return corrupt("payload CRC without its flag", 0, header.payload_crc);
  if (header.frame != FrameKind::envelope && !is_blank(header)) return corrupt("fields in a frame that carries none", 0, 1);
  return header;
}

}  // namespace troupe::transport
