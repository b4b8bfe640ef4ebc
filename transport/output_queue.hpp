#pragma once

#include <sys/uio.h>

#include <deque>
#include <span>
#include <vector>

#include "transport/frame.hpp"

namespace troupe::transport {

/// Frames on their way to one peer, ready for a gathering write. Small payloads are copied into reused buffers, so that many frames are
/// one piece; large ones are moved in and never copied.
///
/// Not thread-safe, but what gather() returned may be written while another thread pushes: pieces never move. Consuming is the writer's.
class OutputQueue {
 public:
  static constexpr std::size_t kLargePayloadBytes = 16 << 10;
  static constexpr std::size_t kChunkBytes = 64 << 10;

  void push(const FrameHeaderBytes& header, Bytes payload);

  std::size_t bytes() const { return bytes_; }
  bool is_empty() const { return bytes_ == 0; }

  /// Fills `pieces` from the front of the queue; returns how many it filled.
  std::size_t gather(std::span<iovec> pieces) const;
  /// That many bytes from the front have been written.
  void consume(std::size_t bytes);
  /// Drops everything and gives the memory back. Not while what gather() returned is being written.
  void clear();

 private:
  struct Piece {
    Bytes data;
    std::size_t written = 0;
    bool is_chunk = false;
  };
  void append_small(BytesView bytes);

  std::deque<Piece> pieces_;
  std::vector<Bytes> spare_chunks_;
  std::size_t bytes_ = 0;
};

}  // namespace troupe::transport
