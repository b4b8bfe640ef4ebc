#include "transport/output_queue.hpp"

#include <gtest/gtest.h>

#include <array>

namespace troupe::testing {
namespace {

using namespace transport;

FrameHeaderBytes header_filled_with(unsigned value) {
  FrameHeaderBytes header;
  header.fill(static_cast<std::byte>(value));
  return header;
}

// Writes the whole queue in steps of `step` bytes.
Bytes drain(OutputQueue& queue, std::size_t step) {
  Bytes written;
  while (!queue.is_empty()) {
    std::array<iovec, 3> pieces;
    std::size_t left = step;
    const std::size_t count = queue.gather(pieces);
    for (std::size_t i = 0; i < count && left > 0; ++i) {
      const auto* first = static_cast<const std::byte*>(pieces[i].iov_base);
      const std::size_t taken = std::min(left, pieces[i].iov_len);
      written.insert(written.end(), first, first + taken);
      left -= taken;
    }
    queue.consume(step - left);
  }
  return written;
}

TEST(OutputQueue, GivesBackTheBytesInOrderWhateverTheWritesTake) {
  Bytes expected;
  OutputQueue queue;
  const std::array<std::size_t, 6> sizes{0, 10, OutputQueue::kLargePayloadBytes, OutputQueue::kLargePayloadBytes + 1, 100'000, 64};
  for (const std::size_t step : {1'000U, 65'536U, 1'000'000U}) {
    expected.clear();
    for (unsigned i = 0; i < 60; ++i) {
      const FrameHeaderBytes header = header_filled_with(i);
      const Bytes payload(sizes[i % sizes.size()], static_cast<std::byte>(i + 100));
      expected.insert(expected.end(), header.begin(), header.end());
      expected.insert(expected.end(), payload.begin(), payload.end());
      queue.push(header, payload);
    }
    EXPECT_EQ(queue.bytes(), expected.size());
    EXPECT_EQ(drain(queue, step), expected);
  }
}

TEST(OutputQueue, PutsManySmallFramesIntoOnePiece) {
  OutputQueue queue;
  for (int i = 0; i < 400; ++i) queue.push(header_filled_with(1), Bytes(64));
  std::array<iovec, 8> pieces;
  EXPECT_EQ(queue.gather(pieces), 1U);
}

TEST(OutputQueue, MovesLargePayloadsWithoutACopy) {
  OutputQueue queue;
  Bytes payload(1 << 20);
  const std::byte* where = payload.data();
  queue.push(header_filled_with(1), std::move(payload));
  std::array<iovec, 8> pieces;
  ASSERT_EQ(queue.gather(pieces), 2U);
  EXPECT_EQ(pieces[1].iov_base, where);
}

TEST(OutputQueue, NeverMovesWhatIsBeingWritten) {
  OutputQueue queue;
  queue.push(header_filled_with(1), Bytes(64));
  std::array<iovec, 1> before;
  ASSERT_EQ(queue.gather(before), 1U);
  for (int i = 0; i < 5'000; ++i) queue.push(header_filled_with(2), Bytes(64));
  std::array<iovec, 1> after;
  ASSERT_EQ(queue.gather(after), 1U);
  EXPECT_EQ(before[0].iov_base, after[0].iov_base);
}

}  // namespace
}  // namespace troupe::testing
