#include <gtest/gtest.h>

#include "mpi/joined_world.hpp"

namespace troupe::testing {
namespace {

// 1 GiB is above the hard limit, so it passes only because its queue is empty.
TEST(LargeMessage, OfOneGibibyteArrivesWhole) {
  constexpr std::size_t kBytes = (std::size_t{1} << 30) + 3;
  if (own() == Rank{0}) {
    WireEnvelope envelope = numbered(1, kBytes);
    for (std::size_t i = 0; i < kBytes; i += 4096) envelope.payload[i] = static_cast<std::byte>(i >> 12);
    ASSERT_TRUE(joined->link()->send(Rank{1}, std::move(envelope)));
  }
  if (own() == Rank{1}) {
    ASSERT_TRUE(sink.wait_for(Rank{0}, 1));
    const WireEnvelope received = sink.take(Rank{0});
    ASSERT_EQ(received.payload.size(), kBytes);
    for (std::size_t i = 0; i < kBytes; i += 4096) ASSERT_EQ(received.payload[i], static_cast<std::byte>(i >> 12)) << i;
  }
  barrier();
}

}  // namespace
}  // namespace troupe::testing
