#include "transport/frame_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "actors/base/check.hpp"
#include "actors/base/digest.hpp"

namespace troupe::transport {
namespace {

constexpr std::size_t kPayloadStepBytes = 256 << 10;

void fill(Frame& frame, const FrameHeader& header) {
  frame.kind = header.frame;
  frame.envelope.kind = header.kind;
  frame.envelope.to = header.to;
  frame.envelope.sender = header.sender;
  frame.envelope.origin = header.origin;
  frame.envelope.correlation = header.correlation;
  frame.envelope.type = header.type;
}

Result<void> check_payload(const FrameHeader& header, std::uint32_t crc) {
  if (!header.has_payload_crc || crc == header.payload_crc) return {};
  return Error{ErrorCode::corrupt,
               fmt::format("frame payload of {} bytes: CRC-32C: want {:08x}, got {:08x}", header.payload_bytes, header.payload_crc, crc)};
}

}  // namespace

FrameReader::FrameReader(std::uint32_t payload_bytes_max) : payload_bytes_max_(payload_bytes_max), buffer_(kBufferBytes) {}

std::array<std::span<std::byte>, 2> FrameReader::space() {
  if (begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  auto free_buffer = std::span(buffer_).subspan(end_);
  if ((in_payload_ || after_large_) && end_ < kFrameHeaderBytes) free_buffer = free_buffer.first(kFrameHeaderBytes - end_);
  if (!in_payload_) return {free_buffer, {}};
  grow_payload();
  const auto free_payload = std::span(payload_).subspan(payload_filled_);
  // What follows the payload may be read in the same call only once the payload's end is in reach.
  return {free_payload, payload_.size() == header_.payload_bytes ? free_buffer : std::span<std::byte>{}};
}

void FrameReader::commit(std::size_t bytes) {
  if (in_payload_) {
    const std::size_t taken = std::min(bytes, payload_.size() - payload_filled_);
    if (header_.has_payload_crc) payload_crc_ = crc32c(BytesView(payload_).subspan(payload_filled_, taken), payload_crc_);
    payload_filled_ += taken;
    bytes -= taken;
  }
  TROUPE_CHECK(bytes <= buffer_.size() - end_, "no more is committed than there was space for");
  end_ += bytes;
}

Result<bool> FrameReader::next(Frame& frame) {
  if (in_payload_) return finish_payload(frame);
  const BytesView ready = BytesView(buffer_).subspan(begin_, end_ - begin_);
  if (ready.size() < kFrameHeaderBytes) return false;
  // A frame that waits for its payload is parsed again with every read, rarely more than once: it is small.
  Result<FrameHeader> header = parse_header(ready, payload_bytes_max_);
  if (!header) return std::move(header).error();
  if (header->payload_bytes > kLargePayloadBytes) {
    begin_payload(*header);
    return finish_payload(frame);
  }
  after_large_ = false;
  const std::size_t whole = kFrameHeaderBytes + header->payload_bytes;
  if (ready.size() < whole) return false;
  const BytesView payload = ready.subspan(kFrameHeaderBytes, header->payload_bytes);
  if (header->has_payload_crc) {
    if (Result<void> checked = check_payload(*header, crc32c(payload)); !checked) return std::move(checked).error();
  }
  fill(frame, *header);
  frame.envelope.payload.assign(payload.begin(), payload.end());
  begin_ += whole;
  return true;
}

void FrameReader::begin_payload(const FrameHeader& header) {
  header_ = header;
  in_payload_ = true;
  begin_ += kFrameHeaderBytes;
  const std::size_t here = std::min<std::size_t>(end_ - begin_, header.payload_bytes);
  const BytesView first = BytesView(buffer_).subspan(begin_, here);
  payload_ = {};
  payload_.reserve(std::min<std::size_t>(header.payload_bytes, kFirstReserveBytes));
  payload_.assign(first.begin(), first.end());
  payload_filled_ = here;
  payload_crc_ = header.has_payload_crc ? crc32c(first) : 0;
  begin_ += here;
}

void FrameReader::grow_payload() {
  const std::size_t whole = header_.payload_bytes;
  if (payload_.size() > payload_filled_ || payload_filled_ == whole) return;
  const std::size_t wanted = std::min(whole, payload_filled_ + kPayloadStepBytes);
  // Fourfold growth: a third of a payload is copied once more, and memory stays in proportion to what the peer really sent.
  if (wanted > payload_.capacity()) payload_.reserve(std::min(whole, std::max(wanted, 4 * payload_filled_)));
  payload_.resize(wanted);
}

Result<bool> FrameReader::finish_payload(Frame& frame) {
  if (payload_filled_ < header_.payload_bytes) return false;
  if (Result<void> checked = check_payload(header_, payload_crc_); !checked) return std::move(checked).error();
  fill(frame, header_);
  frame.envelope.payload = std::move(payload_);
  payload_ = {};
  in_payload_ = false;
  after_large_ = true;
  return true;
}

}  // namespace troupe::transport
