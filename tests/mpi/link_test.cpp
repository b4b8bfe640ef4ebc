#include <gtest/gtest.h>

#include "mpi/joined_world.hpp"
#include "mpi/world.hpp"
#include "transport/collectives/fabric.hpp"

namespace troupe::testing {
namespace {

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
    for (std::uint64_t i = 0; i < kMessages; ++i)
      ASSERT_TRUE(equal(received[i], numbered(i, i % 700))) << "from " << from << ", message " << i;
  }
  barrier();
  sink.forget();
  barrier();
}

TEST(Link, EchoesWhatItsPeersSend) {
  // Even ranks ask the next one, which answers from its sink.
  const Rank partner{index(own()) ^ 1U};
  const bool has_partner = index(partner) < joined->size();
  const bool asks = index(own()) % 2 == 0;
  if (has_partner && !asks) sink.answer_through = joined->link();
  barrier();
  if (has_partner && asks) {
    for (std::uint64_t i = 1; i <= 100; ++i) {
      ASSERT_TRUE(joined->link()->send(partner, numbered(i, 64)));
      ASSERT_TRUE(sink.wait_for(partner, i));
    }
  }
  barrier();
  sink.answer_through = nullptr;
  sink.forget();
}

TEST(Link, GoesBesideTheCollectives) {
  collectives::GroupSpec group;
  group.id = 77;
  group.name = "beside the link";
  for (std::uint32_t i = 0; i < joined->size(); ++i) group.ranks.push_back(Rank{i});
  auto communicator = collectives::Fabric::process().open(group, index(own()));
  ASSERT_TRUE(communicator) << communicator.error().detail;
  ASSERT_TRUE((*communicator)->barrier());
}

TEST(Link, LosesNobody) { EXPECT_EQ(sink.lost_count(), 0U); }

}  // namespace
}  // namespace troupe::testing
