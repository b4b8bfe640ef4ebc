#pragma once

#include <array>
#include <span>

#include "transport/frame.hpp"

namespace troupe::transport {

struct Frame {
  FrameKind kind = FrameKind::heartbeat;
  WireEnvelope envelope;  ///< of FrameKind::envelope
};

/// Cuts a byte stream into frames. Trusts nothing; the memory it holds grows with the bytes that arrived, not with what a header claims:
/// at most kBufferBytes + max(kFirstReserveBytes, 4 × arrived).
///
/// Small frames are read many at a time into one buffer; the payload of a large one is read into its final place.
/// Use: put bytes into space(), commit() them, take frames with next() until it says false. One thread at a time.
class FrameReader {
 public:
  static constexpr std::size_t kBufferBytes = 128 << 10;
  static constexpr std::size_t kLargePayloadBytes = 16 << 10;  ///< larger ones are read in place
  static constexpr std::size_t kFirstReserveBytes = 1 << 20;

  explicit FrameReader(std::uint32_t payload_bytes_max = kPayloadBytesMax);

  /// Where the next bytes of the stream go: the first place until it is full, then the second (which may be empty). Never both empty.
  /// Precondition: next() said false.
  std::array<std::span<std::byte>, 2> space();
  /// That many bytes have been put there.
  void commit(std::size_t bytes);

  /// Takes the next whole frame; false: more bytes are needed. Errors: corrupt; the stream is then of no use any more.
  Result<bool> next(Frame& frame);

  /// True between two frames: a stream that ends here is not cut.
  bool is_between_frames() const { return begin_ == end_ && !in_payload_; }
  std::size_t memory_bytes() const { return buffer_.capacity() + payload_.capacity(); }

 private:
  void begin_payload(const FrameHeader& header);
  void grow_payload();
  Result<bool> finish_payload(Frame& frame);

  std::uint32_t payload_bytes_max_;
  Bytes buffer_;
  std::size_t begin_ = 0;  ///< of the bytes in the buffer that no frame has taken
  std::size_t end_ = 0;

  bool after_large_ = false;  ///< large frames come in rows: only the next header is then read into the buffer, which spares a copy
  bool in_payload_ = false;  ///< a large payload is being read in place; the buffer is then empty, or holds what follows a complete payload
  FrameHeader header_;
  Bytes payload_;
  std::size_t payload_filled_ = 0;
  std::uint32_t payload_crc_ = 0;
};

}  // namespace troupe::transport
