// The collectives over real ranks: whatever mpirun's -n, groups whose layouts name more ranks wrap round.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "mpi/world.hpp"
#include "transport/collectives/fabric.hpp"
#include "transport/collectives/mpi_wire.hpp"
#include "transport/collectives/sums.hpp"

namespace troupe::collectives {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class MpiCollectives : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto wire = open_mpi_wire(troupe::testing::world());
    ASSERT_TRUE(wire.has_value());
    fabric = new Fabric(*wire);
  }
  static void TearDownTestSuite() {
    delete fabric;
    fabric = nullptr;
  }

  // Ranks of the test's layouts, by member, in this world.
  static std::vector<std::vector<Rank>> layouts() {
    const auto ranks = static_cast<std::uint32_t>(troupe::testing::world()->size());
    std::vector<std::vector<Rank>> all = {{Rank{0}, Rank{1}}};
    for (const std::uint32_t size : {1U, 3U, 4U, 8U}) {
      std::vector<Rank> dealt, blocks, backwards;
      for (std::uint32_t i = 0; i < size; ++i) {
        dealt.push_back(Rank{i % ranks});
        blocks.push_back(Rank{i * ranks / size});
        backwards.push_back(Rank{(size - 1 - i) % ranks});
      }
      all.insert(all.end(), {dealt, blocks, backwards});
    }
    return all;
  }

  static GroupSpec next_group(const std::vector<Rank>& ranks, std::chrono::milliseconds deadline = 30s) {
    return {.id = ++groups, .name = "group", .ranks = ranks, .deadline = deadline};
  }

  // A thread for each member that lives here.
  static void run_members(const GroupSpec& spec, const std::function<void(Communicator&)>& body) {
    std::vector<std::thread> threads;
    for (std::uint32_t member = 0; member < spec.ranks.size(); ++member) {
      if (static_cast<int>(index(spec.ranks[member])) != troupe::testing::world()->rank()) continue;
      threads.emplace_back([&, member] {
        auto opened = fabric->open(spec, member);
        ASSERT_TRUE(opened.has_value());
        body(**opened);
      });
    }
    for (auto& thread : threads) thread.join();
  }

  static Fabric* fabric;
  static std::uint64_t groups;
};
Fabric* MpiCollectives::fabric = nullptr;
std::uint64_t MpiCollectives::groups = 0;

TEST_F(MpiCollectives, SumsAreTheTreeInEveryLayout) {
  for (const auto& ranks : layouts()) {
    const auto size = static_cast<std::uint32_t>(ranks.size());
    for (const std::size_t count : {1UL, 1000UL, 50021UL}) {
      const auto expected = testing::expected_sum<float>(size, count);
      run_members(next_group(ranks), [&](Communicator& members) {
        auto data = testing::values_of<float>(members.member(), count);
        auto again = data;
        EXPECT_TRUE(members.all_reduce_sum(std::span<float>(data)).has_value());
        EXPECT_TRUE(testing::same_bits<float>(data, expected));
        const auto [first, last] = piece_of(count, members.member(), size);
        std::vector<float> piece(last - first);
        EXPECT_TRUE(members.reduce_scatter_sum(std::span<float>(again), std::span<float>(piece)).has_value());
        EXPECT_TRUE(testing::same_bits<float>(piece, std::span(expected).subspan(first, last - first)));
      });
    }
  }
}

TEST_F(MpiCollectives, GathersBroadcastsAndExchanges) {
  for (const auto& ranks : layouts()) {
    run_members(next_group(ranks), [&](Communicator& members) {
      const Bytes mine(members.member() * 5000 + 1, static_cast<std::byte>(members.member()));
      const auto all = members.all_gather_variable(mine);
      ASSERT_TRUE(all.has_value());
      Bytes data = mine;
      data.resize(5001);
      const std::uint32_t root = members.size() - 1;
      EXPECT_TRUE(members.broadcast(data, root).has_value());
      EXPECT_EQ(data[0], (*all)[root][0]);
      if (members.size() == 1) return;
      // Round the ring: each pair once.
      if (members.size() == 2) {
        EXPECT_TRUE(members.exchange(1 - members.member(), {}, {}).has_value());
      }
      EXPECT_TRUE(members.barrier().has_value());
    });
  }
}

TEST_F(MpiCollectives, DataTimesTensorHasTheBitsOfOneProcess) {
  std::vector<std::vector<float>> reference(4);
  {
    auto members = local_communicators(4);
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < 4; ++i) threads.emplace_back([&, i] { reference[i] = testing::data_tensor_step(*members[i]).value(); });
    for (auto& thread : threads) thread.join();
  }
  for (const auto& ranks : layouts()) {
    if (ranks.size() != 4) continue;
    run_members(next_group(ranks), [&](Communicator& members) {
      const auto result = testing::data_tensor_step(members);
      ASSERT_TRUE(result.has_value());
      EXPECT_TRUE(testing::same_bits<float>(*result, reference[members.member()]));
    });
  }
}

TEST_F(MpiCollectives, CutsWhatIsTooLargeForOneMessage) {
  auto wire = open_mpi_wire(troupe::testing::world(), {.message_bytes_max = 1000, .deadline_s = 60});
  ASSERT_TRUE(wire.has_value());
  Fabric small(*wire);
  const GroupSpec spec = next_group({Rank{0}, Rank{1}});
  const int rank = troupe::testing::world()->rank();
  if (rank > 1) return;
  auto opened = small.open(spec, static_cast<std::uint32_t>(rank));
  ASSERT_TRUE(opened.has_value());
  for (const std::size_t count : {235UL, 236UL, 237UL, 250UL, 9999UL}) {  // 236 floats and a header are 1000 bytes
    auto data = testing::values_of<float>(static_cast<std::uint32_t>(rank), count);
    EXPECT_TRUE((*opened)->all_reduce_sum(std::span<float>(data)).has_value());
    EXPECT_TRUE(testing::same_bits<float>(data, testing::expected_sum<float>(2, count)));
  }
}

TEST_F(MpiCollectives, MismatchNamesMemberAndRank) {
  const GroupSpec spec = next_group({Rank{0}, Rank{1}});
  run_members(spec, [&](Communicator& members) {
    std::vector<float> data(members.member() == 0 ? 3 : 4);
    const auto done = members.all_reduce_sum(std::span<float>(data));
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().code, ErrorCode::collective_mismatch);
    EXPECT_THAT(done.error().detail, HasSubstr("member 1 (rank 1) is in number 1, all_reduce_sum of 16 bytes"));
  });
}

TEST_F(MpiCollectives, LatenessNamesMemberAndRank) {
  const GroupSpec spec = next_group({Rank{0}, Rank{0}, Rank{1}, Rank{1}}, 200ms);
  run_members(spec, [&](Communicator& members) {
    if (members.member() == 3) return;
    const auto done = members.barrier();
    ASSERT_FALSE(done.has_value());
    EXPECT_EQ(done.error().code, ErrorCode::deadline_exceeded);
    EXPECT_THAT(done.error().detail, HasSubstr("late: member 3 (rank 1)"));
  });
}

}  // namespace
}  // namespace troupe::collectives
