#include "transport/collectives/fabric.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transport/collectives/simulated_ranks.hpp"

namespace troupe::collectives {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::layout;
using testing::run_members;
using testing::SimulatedRanks;

GroupSpec learner(const std::vector<Rank>& ranks, std::chrono::milliseconds deadline = 60s) {
  return {.id = 11, .name = "learner", .ranks = ranks, .deadline = deadline};
}

// Runs the members and returns what each one's calls ended with.
std::vector<Result<void>> outcomes(const GroupSpec& spec, const std::function<Result<void>(Communicator&)>& body) {
  SimulatedRanks ranks(4);
  std::vector<Result<void>> results(spec.ranks.size());
  run_members(ranks, spec, [&](Communicator& members) { results[members.member()] = body(members); });
  return results;
}

Result<void> reduce(Communicator& members, std::size_t count) {
  std::vector<float> data(count);
  return members.all_reduce_sum(std::span<float>(data));
}

// Ranks may see the same mistake at different members at the same time.
template <class Matcher>
void expect_all_mismatch(const std::vector<Result<void>>& results, const Matcher& detail) {
  for (const auto& result : results) {
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().code, ErrorCode::collective_mismatch);
    EXPECT_THAT(result.error().detail, detail);
  }
}

TEST(Fabric, NamesBothMembersWhenOperationsDiffer) {
  for (const auto& ranks : {layout({0, 0}), layout({0, 1})}) {
    const auto results = outcomes(learner(ranks), [](Communicator& members) { return members.member() == 0 ? reduce(members, 5) : members.barrier(); });
    expect_all_mismatch(results, AllOf(HasSubstr("group learner"), HasSubstr("member 0 (rank 0) is in number 1, all_reduce_sum of 20 bytes of float32"),
                                       HasSubstr("member 1 (rank " + std::to_string(index(ranks[1])) + ") is in number 1, barrier")));
  }
}

TEST(Fabric, NamesBothMembersWhenShapesDiffer) {
  for (const auto& ranks : {layout({0, 0, 0, 0}), layout({0, 1, 2, 3}), layout({0, 0, 1, 1})}) {
    const auto results = outcomes(learner(ranks), [](Communicator& members) { return reduce(members, members.member() == 3 ? 6 : 5); });
    expect_all_mismatch(results, AllOf(HasSubstr("member 3 (rank "), HasSubstr("of 24 bytes"), HasSubstr("of 20 bytes")));
  }
}

TEST(Fabric, SeesAMismatchOfMembersThatDoNotTalk) {
  // In a barrier of three, member 0 waits for 2 and 1 for 0; in a sum, 0 waits for 1. Nobody would ever hear from the one it waits for.
  const auto results = outcomes(learner(layout({0, 1, 2})), [](Communicator& members) { return members.member() == 0 ? reduce(members, 5) : members.barrier(); });
  expect_all_mismatch(results, HasSubstr("number 1"));
}

TEST(Fabric, SeesABroadcastFromAnotherRoot) {
  const auto results = outcomes(learner(layout({0, 1, 0})), [](Communicator& members) {
    // A root returns when its bytes have left, so it may hear of the mismatch at the next call only.
    Bytes data(8);
    const auto done = members.broadcast(data, members.member() == 1 ? 1 : 0);
    return done ? members.barrier() : done;
  });
  expect_all_mismatch(results, HasSubstr("number 1"));
}

TEST(Fabric, SeesAMemberThatSkippedACall) {
  const auto results = outcomes(learner(layout({0, 1})), [](Communicator& members) {
    Result<void> done;
    if (members.member() == 0) done = members.barrier();
    return done ? reduce(members, 3) : done;
  });
  expect_all_mismatch(results, HasSubstr("number 1"));
}

TEST(Fabric, RefusesAnExchangeOfAnotherSize) {
  const auto results = outcomes(learner(layout({0, 1})), [](Communicator& members) {
    Bytes out(8);
    Bytes in(members.member() == 0 ? 8 : 9);
    return members.exchange(1 - members.member(), out, in);
  });
  ASSERT_FALSE(results[1].has_value());
  EXPECT_THAT(results[1].error().detail, AllOf(HasSubstr("wants 9 bytes of member 0"), HasSubstr("got 8")));
}

TEST(Fabric, NamesTheLateMemberNotTheOneThatWaitsForIt) {
  for (const auto& ranks : {layout({0, 0, 0, 0}), layout({0, 1, 2, 3}), layout({0, 1, 0, 1})}) {
    // Member 0 hears from 2, which waits for 3.
    const auto results = outcomes(learner(ranks, 100ms), [](Communicator& members) { return members.member() == 3 ? Result<void>() : reduce(members, 20000); });
    for (const std::size_t i : {0UL, 1UL, 2UL}) {
      ASSERT_FALSE(results[i].has_value());
      EXPECT_EQ(results[i].error().code, ErrorCode::deadline_exceeded);
      EXPECT_THAT(results[i].error().detail, HasSubstr("late: member 3 (rank " + std::to_string(index(ranks[3])) + ")"));
    }
  }
}

TEST(Fabric, TellsALateMemberWhenItComes) {
  SimulatedRanks ranks(2);
  const GroupSpec spec = learner(layout({0, 1}), 50ms);
  auto early = ranks.at(Rank{0}).open(spec, 0);
  auto late = ranks.at(Rank{1}).open(spec, 1);
  EXPECT_EQ((*early)->barrier().error().code, ErrorCode::deadline_exceeded);
  EXPECT_THAT((*late)->barrier().error().detail, HasSubstr("late: member 1 (rank 1)"));
}

TEST(Fabric, FailedGroupsRefuseEveryLaterCall) {
  SimulatedRanks ranks(1);
  auto member = ranks.at(Rank{0}).open(learner(layout({0, 0})), 0);
  ranks.at(Rank{0}).abort(11, {ErrorCode::cancelled, "the job stops"});
  EXPECT_EQ((*member)->barrier().error().detail, "the job stops");
  EXPECT_EQ(reduce(**member, 4).error().detail, "the job stops");
}

TEST(Fabric, AbortWakesWaitingMembersEverywhere) {
  for (const auto& layout_of : {layout({0, 0, 0}), layout({0, 1, 1})}) {
    SimulatedRanks ranks(2);
    std::vector<Result<void>> results(2);
    run_members(ranks, learner(layout_of), [&](Communicator& members) {
      // Member 1 says that it is about to wait for ever, and member 0 aborts.
      if (members.member() == 2) return;
      if (members.member() == 1) (void)members.exchange(0, {}, {});
      if (members.member() == 0) {
        (void)members.exchange(1, {}, {});
        ranks.at(layout_of[0]).abort(11, {ErrorCode::cancelled, "member 2 failed"});
      }
      results[members.member()] = members.barrier();
    });
    for (const auto& result : results) EXPECT_EQ(result.error().detail, "member 2 failed");
  }
}

TEST(Fabric, AMemberThatCannotComeWakesThoseThatWaitForItInASplit) {
  for (const auto& layout_of : {layout({0, 0, 0}), layout({0, 1, 1})}) {
    SimulatedRanks ranks(2);
    std::vector<Result<void>> results(2);
    const GroupSpec spec = learner(layout_of);
    run_members(ranks, spec, [&](Communicator& members) {
      auto part = members.split(0, members.member());
      if (members.member() == 2) return ranks.at(layout_of[2]).abort(spec, {ErrorCode::resource_short, "no memory"});
      results[members.member()] = part ? (*part)->barrier() : Result<void>(part.error());  // the others may still be in the split
    });
    for (const auto& result : results) EXPECT_EQ(result.error().detail, "no memory");
  }
}

TEST(Fabric, AMemberThatNeverOpenedTheGroupWakesThoseThatWaitForIt) {
  SimulatedRanks ranks(2);
  const GroupSpec spec = learner(layout({0, 1}));
  auto member = ranks.at(Rank{0}).open(spec, 0);
  ranks.at(Rank{1}).abort(spec, {ErrorCode::resource_short, "no memory"});
  EXPECT_EQ((*member)->barrier().error().detail, "no memory");
}

TEST(Fabric, AbortsWhatIsOpenAndWhatIsOpenedUntilItReopens) {
  SimulatedRanks ranks(1);
  Fabric& fabric = ranks.at(Rank{0});
  auto before = fabric.open({.id = 1, .name = "before", .ranks = layout({0, 0})}, 0);
  fabric.abort_all({ErrorCode::cancelled, "the job stops"});
  EXPECT_EQ((*before)->barrier().error().detail, "the job stops");
  auto late = fabric.open({.id = 2, .name = "late", .ranks = layout({0, 0})}, 0);
  EXPECT_EQ((*late)->barrier().error().detail, "the job stops");
  fabric.reopen();
  auto after = fabric.open({.id = 3, .name = "after", .ranks = layout({0})}, 0);
  EXPECT_TRUE((*after)->barrier());
}

TEST(Fabric, ALostRankWakesThoseThatWaitForIt) {
  SimulatedRanks ranks(3);
  std::vector<Result<void>> results(2);
  run_members(ranks, learner(layout({0, 1, 2})), [&](Communicator& members) {
    if (members.member() == 2) return;
    if (members.member() == 0) ranks.at(Rank{0}).lose(Rank{2}, "killed by signal 9");
    results[members.member()] = members.barrier();
  });
  for (const auto& result : results) {
    EXPECT_EQ(result.error().code, ErrorCode::peer_lost);
    EXPECT_THAT(result.error().detail, AllOf(HasSubstr("rank 2 is lost"), HasSubstr("killed by signal 9")));
  }
}

TEST(Fabric, RefusesNewGroupsWithALostRank) {
  SimulatedRanks ranks(1);
  ranks.at(Rank{0}).lose(Rank{2}, "gone");
  EXPECT_EQ(ranks.at(Rank{0}).open(learner(layout({0, 2})), 0).error().code, ErrorCode::peer_lost);
}

TEST(Fabric, KeepsPacketsForAMemberThatOpensLater) {
  SimulatedRanks ranks(2);
  const GroupSpec spec = learner(layout({0, 1, 1}));
  std::thread first([&] {
    auto member = ranks.at(Rank{0}).open(spec, 0);
    EXPECT_TRUE((*member)->exchange(1, Bytes(3), {}).has_value());
    EXPECT_TRUE((*member)->exchange(2, Bytes(4), {}).has_value());
  });
  auto second = ranks.at(Rank{1}).open(spec, 1);
  Bytes in(3);
  EXPECT_TRUE((*second)->exchange(0, {}, in).has_value());
  auto third = ranks.at(Rank{1}).open(spec, 2);
  in.resize(4);
  EXPECT_TRUE((*third)->exchange(0, {}, in).has_value());
  first.join();
}

TEST(Fabric, RefusesWhatIsNotItsOwn) {
  SimulatedRanks ranks(1);
  Fabric& fabric = ranks.at(Rank{0});
  const GroupSpec spec = learner(layout({0, 1}));
  EXPECT_THAT(fabric.open(spec, 2).error().detail, HasSubstr("is not one of its 2 members"));
  EXPECT_THAT(fabric.open(spec, 1).error().detail, HasSubstr("lives on rank 1"));
  {
    auto once = fabric.open(spec, 0);
    EXPECT_TRUE(once.has_value());
    EXPECT_THAT(fabric.open(spec, 0).error().detail, HasSubstr("was open before"));
  }
  EXPECT_THAT(fabric.open(spec, 0).error().detail, HasSubstr("was open before"));
}

TEST(Fabric, WithoutAWireEveryRankIsHere) {
  Fabric fabric;
  const GroupSpec spec = learner(layout({0, 1, 2, 3}));
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      auto member = fabric.open(spec, i);
      EXPECT_TRUE((*member)->barrier().has_value());
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace troupe::collectives
