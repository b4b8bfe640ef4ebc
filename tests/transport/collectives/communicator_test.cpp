#include "transport/collectives/communicator.hpp"

#include <gtest/gtest.h>

#include <string>

#include "transport/collectives/simulated_ranks.hpp"
#include "transport/collectives/sums.hpp"

namespace troupe::collectives {
namespace {

using testing::layout;
using testing::run_members;

// Groups of every size, spread over 1 to 4 ranks: neighbours together, dealt out, uneven, backwards.
std::vector<std::vector<Rank>> layouts() {
  return {layout({0}),
          layout({0, 0}), layout({0, 1}), layout({1, 0}),
          layout({0, 0, 0}), layout({0, 1, 1}), layout({2, 1, 0}),
          layout({0, 0, 0, 0}), layout({0, 0, 1, 1}), layout({0, 1, 0, 1}), layout({2, 0, 0, 1}), layout({3, 2, 1, 0}),
          layout({0, 1, 2, 3, 0}), layout({0, 0, 0, 1, 1, 1}), layout({3, 3, 1, 0, 2, 2, 1}),
          layout({0, 0, 0, 0, 0, 0, 0, 0}), layout({0, 1, 2, 3, 0, 1, 2, 3}), layout({0, 0, 0, 0, 1, 1, 2, 3}), layout({1, 1, 0, 2, 2, 2, 0, 1})};
}

std::string name_of(const std::vector<Rank>& ranks) {
  std::string text;
  for (const Rank rank : ranks) text += std::to_string(index(rank));
  return text;
}

template <class T>
void expect_all_reduce_is_the_tree(std::size_t count) {
  for (const auto& ranks : layouts()) {
    SCOPED_TRACE(name_of(ranks));
    const auto size = static_cast<std::uint32_t>(ranks.size());
    const auto expected = testing::expected_sum<T>(size, count);
    run_members(ranks, [&](Communicator& members) {
      auto data = testing::values_of<T>(members.member(), count);
      EXPECT_TRUE(members.all_reduce_sum(std::span<T>(data)).has_value());
      EXPECT_TRUE(testing::same_bits<T>(data, expected));
    });
  }
}

TEST(Communicator, AllReduceOfFloatsIsTheTreeInEveryLayout) {
  for (const std::size_t count : {0UL, 1UL, 7UL, 1000UL, 20011UL}) expect_all_reduce_is_the_tree<float>(count);
}
TEST(Communicator, AllReduceOfDoublesIsTheTreeInEveryLayout) {
  for (const std::size_t count : {1UL, 999UL, 10007UL}) expect_all_reduce_is_the_tree<double>(count);
}

TEST(Communicator, TheOrderOfTheTreeMattersForTheTestsValues) {
  // Else the tests above could not fail: summing in order of the members gives other bits.
  const auto tree = testing::expected_sum<float>(8, 1000);
  auto chain = testing::values_of<float>(0, 1000);
  for (std::uint32_t member = 1; member < 8; ++member) {
    const auto next = testing::values_of<float>(member, 1000);
    for (std::size_t i = 0; i < chain.size(); ++i) chain[i] = chain[i] + next[i];
  }
  EXPECT_FALSE(testing::same_bits<float>(tree, chain));
}

template <class T>
void expect_reduce_scatter_is_the_tree(std::size_t count) {
  for (const auto& ranks : layouts()) {
    SCOPED_TRACE(name_of(ranks));
    const auto size = static_cast<std::uint32_t>(ranks.size());
    const auto expected = testing::expected_sum<T>(size, count);
    run_members(ranks, [&](Communicator& members) {
      auto data = testing::values_of<T>(members.member(), count);
      const auto [first, last] = piece_of(count, members.member(), size);
      std::vector<T> piece(last - first);
      EXPECT_TRUE(members.reduce_scatter_sum(std::span<T>(data), std::span<T>(piece)).has_value());
      EXPECT_TRUE(testing::same_bits<T>(piece, std::span(expected).subspan(first, last - first)));
    });
  }
}

TEST(Communicator, ReduceScatterHasTheBitsOfTheTreeInEveryLayout) {
  for (const std::size_t count : {0UL, 3UL, 8UL, 1003UL}) expect_reduce_scatter_is_the_tree<float>(count);
  expect_reduce_scatter_is_the_tree<double>(517);
}

TEST(Communicator, AllGatherPutsMembersInOrder) {
  for (const auto& ranks : layouts()) {
    SCOPED_TRACE(name_of(ranks));
    run_members(ranks, [&](Communicator& members) {
      const std::vector<std::uint32_t> mine = {members.member(), members.member() * 10};
      std::vector<std::uint32_t> all(2 * members.size());
      EXPECT_TRUE(members.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all))).has_value());
      for (std::uint32_t i = 0; i < members.size(); ++i) EXPECT_EQ(all[2 * i + 1], i * 10);
    });
  }
}

TEST(Communicator, AllGatherVariableKeepsEachMembersSize) {
  for (const auto& ranks : layouts()) {
    SCOPED_TRACE(name_of(ranks));
    run_members(ranks, [&](Communicator& members) {
      const Bytes mine(members.member() * 1000, static_cast<std::byte>(members.member()));
      const auto all = members.all_gather_variable(mine);
      ASSERT_TRUE(all.has_value());
      for (std::uint32_t i = 0; i < members.size(); ++i) EXPECT_EQ((*all)[i], Bytes(i * 1000, static_cast<std::byte>(i)));
    });
  }
}

TEST(Communicator, BroadcastsFromEveryRoot) {
  for (const auto& ranks : layouts()) {
    SCOPED_TRACE(name_of(ranks));
    run_members(ranks, [&](Communicator& members) {
      for (std::uint32_t root = 0; root < members.size(); ++root) {
        Bytes data(333, static_cast<std::byte>(members.member()));
        EXPECT_TRUE(members.broadcast(data, root).has_value());
        EXPECT_EQ(data, Bytes(333, static_cast<std::byte>(root)));
      }
    });
  }
}

TEST(Communicator, ExchangesBetweenPairsWithoutTheRest) {
  run_members(layout({0, 1, 0, 1, 2}), [&](Communicator& members) {
    if (members.member() == 4) return;  // takes no part
    const std::uint32_t peer = members.member() ^ 1U;
    for (int round = 0; round < 3; ++round) {
      const Bytes out(members.member() * 7, static_cast<std::byte>(members.member() + 10));
      Bytes in(peer * 7);
      EXPECT_TRUE(members.exchange(peer, out, in).has_value());
      EXPECT_EQ(in, Bytes(peer * 7, static_cast<std::byte>(peer + 10)));
    }
  });
}

TEST(Communicator, BarrierWaitsForEveryMember) {
  for (const auto& ranks : layouts()) {
    std::atomic<std::size_t> arrived{0};
    run_members(ranks, [&](Communicator& members) {
      for (std::size_t round = 1; round <= 5; ++round) {
        ++arrived;
        EXPECT_TRUE(members.barrier().has_value());
        EXPECT_GE(arrived.load(), round * members.size());
      }
    });
  }
}

TEST(Communicator, SplitsByColourAndOrdersByKey) {
  run_members(layout({0, 1, 1, 2, 0}), [&](Communicator& members) {
    // Colours 0: members 0, 2, 4; 1: members 1, 3. Keys turn the order round.
    const auto part = members.split(members.member() % 2, 10 - members.member());
    ASSERT_TRUE(part.has_value());
    EXPECT_EQ((*part)->size(), members.member() % 2 == 0 ? 3U : 2U);
    std::vector<std::uint32_t> who((*part)->size());
    const std::uint32_t mine = members.member();
    EXPECT_TRUE((*part)->all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(who))).has_value());
    EXPECT_EQ(who, members.member() % 2 == 0 ? (std::vector<std::uint32_t>{4, 2, 0}) : (std::vector<std::uint32_t>{3, 1}));
    EXPECT_TRUE(members.barrier().has_value());
  });
}

TEST(Communicator, DataTimesTensorHasTheSameBitsInEveryLayout) {
  std::vector<std::vector<float>> reference(4);
  run_members(layout({0, 0, 0, 0}), [&](Communicator& members) { reference[members.member()] = testing::data_tensor_step(members).value(); });
  for (const auto& ranks : {layout({0, 0, 1, 1}), layout({0, 1, 1, 0}), layout({0, 1, 2, 2}), layout({2, 0, 1, 3}), layout({0, 1, 2, 3})}) {
    SCOPED_TRACE(name_of(ranks));
    run_members(ranks, [&](Communicator& members) {
      const auto result = testing::data_tensor_step(members);
      ASSERT_TRUE(result.has_value());
      EXPECT_TRUE(testing::same_bits<float>(*result, reference[members.member()]));
    });
  }
}

TEST(Communicator, LocalGroupsNeedNoFabric) {
  auto members = local_communicators(3);
  std::vector<std::vector<float>> data(3, std::vector<float>{1.5F});
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 3; ++i) threads.emplace_back([&, i] { EXPECT_TRUE(members[i]->all_reduce_sum(std::span<float>(data[i])).has_value()); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(data[2][0], 4.5F);
}

TEST(Communicator, AGroupOfOneNeedsNoOtherThread) {
  auto alone = std::move(local_communicators(1)[0]);
  std::vector<float> data{2.5F};
  EXPECT_TRUE(alone->all_reduce_sum(std::span<float>(data)).has_value());
  EXPECT_TRUE(alone->barrier().has_value());
  EXPECT_TRUE(alone->split(3, 0).has_value());
  EXPECT_EQ(data[0], 2.5F);
}

TEST(PieceOf, CutsEveryElementOnce) {
  for (const std::size_t count : {0UL, 1UL, 7UL, 8UL, 1000003UL}) {
    for (const std::uint32_t size : {1U, 2U, 3U, 8U, 13U}) {
      std::size_t at = 0;
      for (std::uint32_t member = 0; member < size; ++member) {
        const auto [first, last] = piece_of(count, member, size);
        EXPECT_EQ(first, at);
        EXPECT_LE(last - first, count / size + 1);
        at = last;
      }
      EXPECT_EQ(at, count);
    }
  }
}

}  // namespace
}  // namespace troupe::collectives
