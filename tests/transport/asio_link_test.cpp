#include "transport/asio_link.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "transport/link_world.hpp"

namespace troupe::testing {
namespace {

constexpr Rank kZero{0};
constexpr Rank kOne{1};

class AsioLinkOver : public ::testing::TestWithParam<LinkWorld::Over> {};
INSTANTIATE_TEST_SUITE_P(, AsioLinkOver, ::testing::Values(LinkWorld::Over::unix_socket, LinkWorld::Over::tcp),
                         [](const auto& param) { return param.param == LinkWorld::Over::tcp ? "Tcp" : "UnixSocket"; });

TEST_P(AsioLinkOver, DeliversInOrderAndWhole) {
  LinkWorld world(2, GetParam());
  world.open_and_start_all();
  const std::vector<std::size_t> sizes{0, 1, 8, 16383, 16384, 16385, 65536, 131072, 1 << 20, (3 << 20) + 1};
  for (std::uint64_t i = 0; i < 200; ++i) ASSERT_TRUE(world.links[0]->send(kOne, numbered(i, sizes[i % sizes.size()])));
  ASSERT_TRUE(world.sinks[1].wait_for(kZero, 200));
  const auto received = world.sinks[1].received(kZero);
  for (std::uint64_t i = 0; i < 200; ++i) EXPECT_TRUE(equal(received[i], numbered(i, sizes[i % sizes.size()]))) << i;
}

TEST_P(AsioLinkOver, DeliversWhatWasQueuedBeforeThePeersWereLinked) {
  LinkWorld world(2, GetParam());
  world.open(0);
  world.start(0);
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(world.links[0]->send(kOne, numbered(i)));
  world.open(1);
  world.start(1);
  EXPECT_TRUE(world.sinks[1].wait_for(kZero, 10));
}

TEST_P(AsioLinkOver, EchoesBetweenAllPairs) {
  LinkWorld world(4, GetParam());
  world.open_and_start_all();
  for (std::uint32_t from = 0; from < 4; ++from) {
    for (std::uint32_t to = 0; to < 4; ++to) {
      if (from == to) continue;
      ASSERT_TRUE(world.links[from]->send(Rank{to}, numbered(from * 4 + to)));
    }
  }
  for (std::uint32_t to = 0; to < 4; ++to) {
    for (std::uint32_t from = 0; from < 4; ++from) {
      if (from == to) continue;
      ASSERT_TRUE(world.sinks[to].wait_for(Rank{from}, 1));
      EXPECT_TRUE(equal(world.sinks[to].received(Rank{from})[0], numbered(from * 4 + to)));
    }
  }
}

TEST_P(AsioLinkOver, KeepsEachThreadsOrderWhenManyThreadsSend) {
  LinkWorld world(2, GetParam());
  world.open_and_start_all();
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&world, thread] {
      for (std::uint64_t i = 0; i < 2000; ++i) ASSERT_TRUE(world.links[0]->send(kOne, numbered(thread << 32 | i, 64)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(world.sinks[1].wait_for(kZero, 8000));
  std::array<std::uint64_t, 4> next{};
  for (const WireEnvelope& envelope : world.sinks[1].received(kZero)) {
    const std::uint64_t thread = envelope.origin.sequence >> 32;
    EXPECT_EQ(envelope.origin.sequence & 0xFFFFFFFF, next[thread]++);
  }
}

TEST_P(AsioLinkOver, StopsInGoodOrderWithoutALostPeer) {
  LinkWorld world(2, GetParam());
  world.open_and_start_all();
  for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(world.links[0]->send(kOne, numbered(i, 1000)));
  world.links[0]->stop();
  ASSERT_TRUE(world.sinks[1].wait_for(kZero, 1000));
  EXPECT_TRUE(world.sinks[1].wait_left(kZero));
  EXPECT_EQ(world.links[1]->send(kZero, numbered(0)).error().code, ErrorCode::peer_lost);
  world.links[1]->stop();
  EXPECT_EQ(world.sinks[0].lost_count() + world.sinks[1].lost_count(), 0U);
}

}  // namespace
}  // namespace troupe::testing
