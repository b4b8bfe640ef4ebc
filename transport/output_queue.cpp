#include "transport/output_queue.hpp"

#include <algorithm>

#include "actors/base/check.hpp"

namespace troupe::transport {
namespace {

constexpr std::size_t kSpareChunksMax = 8;

}  // namespace

void OutputQueue::push(const FrameHeaderBytes& header, Bytes payload) {
  bytes_ += header.size() + payload.size();
  if (payload.size() > kLargePayloadBytes) {
    append_small(header);
    pieces_.push_back({.data = std::move(payload), .written = 0, .is_chunk = false});
    return;
  }
  // A header and its payload need not share a chunk.
  append_small(header);
  if (!payload.empty()) append_small(payload);
}

void OutputQueue::append_small(BytesView bytes) {
  // Appending stays within a chunk's capacity: a writer may be reading its earlier bytes.
  if (pieces_.empty() || !pieces_.back().is_chunk || pieces_.back().data.size() + bytes.size() > kChunkBytes) {
    Bytes chunk;
    if (!spare_chunks_.empty()) {
      chunk = std::move(spare_chunks_.back());
      spare_chunks_.pop_back();
    } else {
      chunk.reserve(kChunkBytes);
    }
    pieces_.push_back({.data = std::move(chunk), .written = 0, .is_chunk = true});
  }
  Bytes& chunk = pieces_.back().data;
  chunk.insert(chunk.end(), bytes.begin(), bytes.end());
}

std::size_t OutputQueue::gather(std::span<iovec> pieces) const {
  const std::size_t count = std::min(pieces.size(), pieces_.size());
  for (std::size_t i = 0; i < count; ++i) {
    const Piece& piece = pieces_[i];
    pieces[i] = {.iov_base = const_cast<std::byte*>(piece.data.data()) + piece.written, .iov_len = piece.data.size() - piece.written};
  }
  return count;
}

void OutputQueue::consume(std::size_t bytes) {
  TROUPE_CHECK(bytes <= bytes_, "only what was queued can have been written");
  bytes_ -= bytes;
  while (!pieces_.empty()) {
    Piece& piece = pieces_.front();
    const std::size_t taken = std::min(bytes, piece.data.size() - piece.written);
    piece.written += taken;
    bytes -= taken;
    if (piece.written < piece.data.size()) return;
    if (piece.is_chunk && spare_chunks_.size() < kSpareChunksMax) {
      piece.data.clear();
      spare_chunks_.push_back(std::move(piece.data));
    }
    pieces_.pop_front();
  }
}

void OutputQueue::clear() {
  pieces_.clear();
  spare_chunks_.clear();
  bytes_ = 0;
}

}  // namespace troupe::transport
