#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "mpi/world.hpp"
#include "transport/link_world.hpp"
#include "transport/world.hpp"

namespace troupe::testing {
namespace {

std::unique_ptr<transport::World> joined;
KeepingSink sink;

class JoinedWorld : public ::testing::Environment {
  void SetUp() override {
    auto world = transport::World::join();
    ASSERT_TRUE(world) << world.error().detail;
    joined = std::move(*world);
    joined->link()->start(sink);
  }
  void TearDown() override { EXPECT_TRUE(joined->leave()); }
};
const auto* const environment = ::testing::AddGlobalTestEnvironment(new JoinedWorld);

Rank own() { return joined->rank(); }
void barrier() { ASSERT_TRUE(joined->all_gather({})); }

TEST(World, KnowsItsRanksAndHosts) {
  EXPECT_EQ(joined->size(), static_cast<std::uint32_t>(world()->size()));
  EXPECT_EQ(index(own()), static_cast<std::uint32_t>(world()->rank()));
  EXPECT_EQ(joined->hosts().size(), joined->size());
  EXPECT_EQ(joined->link()->size(), joined->size());
}

TEST(World, GathersEveryRanksBytes) {
  const auto all = joined->all_gather(text_bytes("rank " + std::to_string(index(own()))));
  ASSERT_TRUE(all);
  for (std::uint32_t i = 0; i < joined->size(); ++i) EXPECT_EQ((*all)[i], text_bytes("rank " + std::to_string(i)));
}

TEST(Link, DeliversInOrderBetweenAllPairs) {
  constexpr std::uint64_t kMessages = 5'000;
  for (std::uint64_t i = 0; i < kMessages; ++i) {
    for (std::uint32_t to = 0; to < joined->size(); ++to) {
      if (Rank{to} == own()) continue;
      ASSERT_TRUE(joined->link()->send(Rank{to}, numbered(i, i % 700)));
    }
  }
  for (std::uint32_t from = 0; from < joined->size(); ++from) {
    if (Rank{from} == own()) continue;
    ASSERT_TRUE(sink.wait_for(Rank{from}, kMessages));
    const auto received = sink.received(Rank{from});
    for (std::uint64_t i = 0; i < kMessages; ++i) ASSERT_TRUE(equal(received[i], numbered(i, i % 700))) << "from " << from << ", message " << i;
  }
  barrier();
  sink.forget();
  barrier();
}

TEST(Link, LosesNobody) { EXPECT_EQ(sink.lost_count(), 0U); }

}  // namespace
}  // namespace troupe::testing
