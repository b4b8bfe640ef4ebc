#include "actors/system.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/cast.hpp"
#include "actors/simulation.hpp"

namespace troupe::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <class R>
Result<R> get(Simulation& simulation, std::future<Result<R>> future) {
  while (future.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    if (!simulation.step()) return Error{ErrorCode::internal, "idle without an answer"};
  }
  return future.get();
}
template <class M, class... Args>
Result<reply_of<M>> ask(Simulation& simulation, ActorRef to, Args&&... args) {
  return get(simulation, simulation.system().ask<M>(to, std::forward<Args>(args)...));
}
ActorRef on(std::uint32_t rank, std::string_view name) { return {actor_id(name), Rank{rank}}; }

TEST(System, AnswersAnAsk) {
  Simulation simulation(1);
  const ActorRef counter = *simulation.system().spawn<Counter>("counter", 5);
  EXPECT_EQ(*ask<Add>(simulation, counter, 2), 7);
  EXPECT_EQ(*ask<Total>(simulation, counter), 7);
}

TEST(System, RefusesATakenName) {
  Simulation simulation(1);
  ASSERT_TRUE(simulation.system().spawn<Counter>("counter"));
  EXPECT_THAT(simulation.system().spawn<Counter>("counter").error().detail, HasSubstr("counter"));
}

TEST(System, AnswersForActorsThatAreNotThere) {
  Simulation simulation(1, {.ranks = 2});
  EXPECT_EQ(simulation.system().ask<Add>(on(0, "nobody"), 1).get().error().code, ErrorCode::actor_unreachable);
  EXPECT_EQ(ask<Add>(simulation, on(1, "nobody"), 1).error().code, ErrorCode::actor_unreachable);
}

TEST(System, NamesAMessageWithoutAHandler) {
  Simulation simulation(1);
  const ActorRef counter = *simulation.system().spawn<Counter>("counter");
  EXPECT_THAT(ask<Heard>(simulation, counter).error().detail, HasSubstr("Heard"));
}

TEST(System, AsksAcrossRanks) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Simulation simulation(seed, {.ranks = 3});
    const ActorRef counter = *simulation.system(2).spawn<Counter>("counter");
    ASSERT_TRUE(simulation.system(0).spawn<Driver>("driver"));
    EXPECT_THAT(*ask<Drive>(simulation, on(0, "driver"), counter, 4), ElementsAre(1, 3, 6, 10));
  }
}

TEST(System, KeepsTheOrderOfAPair) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Simulation simulation(seed, {.ranks = 2});
    const ActorRef counter = *simulation.system(1).spawn<Counter>("counter");
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(simulation.system(0).tell<Add>(counter, 1));
    EXPECT_EQ(*ask<Total>(simulation, counter), 100);
  }
}

TEST(System, SpawnsOnAnotherRank) {
  Simulation simulation(3, {.ranks = 2});
  const ActorRef driver = *simulation.system().spawn<Driver>("driver");
  EXPECT_EQ(*ask<SpawnThere>(simulation, driver, Rank{1}, "there"), 42);
  EXPECT_THAT(ask<SpawnThere>(simulation, driver, Rank{1}, "there").error().detail, HasSubstr("there"));
}

TEST(System, ADeadlinePasses) {
  Simulation simulation(1, {.ranks = 2});
  const ActorRef sleeper = *simulation.system(1).spawn<Sleeper>("sleeper");
  const ActorRef driver = *simulation.system().spawn<Driver>("driver");
  EXPECT_EQ(*ask<AskWithin>(simulation, driver, sleeper, 5'000'000'000), static_cast<int>(ErrorCode::deadline_exceeded));
  EXPECT_GE(simulation.now(), Time{5'000'000'000});
}

TEST(System, AFailureReachesTheAskerAndStopsTheActor) {
  Simulation simulation(1);
  std::string failed;
  Simulation with(1, {.system = {.on_failure = [&](std::string_view name, const Error& error) { failed = std::string(name) + ": " + error.detail; }}});
  const ActorRef counter = *with.system().spawn<Counter>("counter");
  EXPECT_THAT(ask<Fail>(with, counter, "out of paper").error().detail, HasSubstr("out of paper"));
  with.run_until_idle();
  EXPECT_THAT(failed, HasSubstr("counter"));
  EXPECT_EQ(ask<Total>(with, counter).error().code, ErrorCode::actor_unreachable);
}

SpawnOptions supervising(Supervision::Strategy strategy) { return {.children = {.strategy = strategy, .restarts_max = 2}}; }

TEST(Supervision, RestartsOneForOne) {
  Simulation simulation(1);
  const ActorRef parent = *simulation.system().spawn<Parent>("parent", supervising(Supervision::Strategy::one_for_one));
  ASSERT_TRUE(ask<SpawnChildren>(simulation, parent, 2));
  EXPECT_EQ(*ask<Add>(simulation, on(0, "parent/0"), 5), 5);
  EXPECT_EQ(*ask<Add>(simulation, on(0, "parent/1"), 6), 6);
  EXPECT_FALSE(ask<Fail>(simulation, on(0, "parent/0"), "oops"));
  simulation.run_until_idle();
  EXPECT_EQ(*ask<Total>(simulation, on(0, "parent/0")), 0);
  EXPECT_EQ(*ask<Total>(simulation, on(0, "parent/1")), 6);
}

TEST(Supervision, RestartsOneForAll) {
  Simulation simulation(1);
  const ActorRef parent = *simulation.system().spawn<Parent>("parent", supervising(Supervision::Strategy::one_for_all));
  ASSERT_TRUE(ask<SpawnChildren>(simulation, parent, 2));
  EXPECT_EQ(*ask<Add>(simulation, on(0, "parent/1"), 6), 6);
  EXPECT_FALSE(ask<Fail>(simulation, on(0, "parent/0"), "oops"));
  simulation.run_until_idle();
  EXPECT_EQ(*ask<Total>(simulation, on(0, "parent/1")), 0);
}

TEST(Supervision, BacksOffAndEscalatesPastTheLimit) {
  Simulation simulation(1);
  std::string failed;
  Simulation with(1, {.system = {.on_failure = [&](std::string_view name, const Error&) { failed = name; }}});
  const ActorRef parent = *with.system().spawn<Parent>("parent", supervising(Supervision::Strategy::one_for_one));
  ASSERT_TRUE(ask<SpawnChildren>(with, parent, 1));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(failed, "");
    EXPECT_FALSE(ask<Fail>(with, on(0, "parent/0"), "again"));
    with.run_until_idle();
  }
  EXPECT_EQ(failed, "parent");
  EXPECT_GE(with.now(), Time{300'000'000});
  EXPECT_EQ(ask<Heard>(with, parent).error().code, ErrorCode::actor_unreachable);
}

TEST(Monitor, HearsOfAStop) {
  Simulation simulation(1, {.ranks = 2});
  const ActorRef counter = *simulation.system(1).spawn<Counter>("counter");
  const ActorRef parent = *simulation.system().spawn<Parent>("parent");
  ASSERT_TRUE(ask<Watch>(simulation, parent, counter, false));
  simulation.run_until_idle();
  EXPECT_FALSE(ask<Fail>(simulation, counter, "broken"));
  simulation.run_until_idle();
  EXPECT_THAT(*ask<Heard>(simulation, parent), ElementsAre(HasSubstr("broken")));
}

TEST(Monitor, HearsAtOnceOfWhatIsNotThere) {
  Simulation simulation(1, {.ranks = 2});
  const ActorRef parent = *simulation.system().spawn<Parent>("parent");
  ASSERT_TRUE(ask<Watch>(simulation, parent, on(1, "nobody"), false));
  ASSERT_TRUE(ask<Watch>(simulation, parent, on(0, "nobody"), false));
  simulation.run_until_idle();
  EXPECT_EQ(ask<Heard>(simulation, parent)->size(), 2U);
}

TEST(Monitor, HearsOfALostRank) {
  Simulation simulation(1, {.ranks = 2});
  const ActorRef counter = *simulation.system(1).spawn<Counter>("counter");
  const ActorRef parent = *simulation.system().spawn<Parent>("parent");
  ASSERT_TRUE(ask<Watch>(simulation, parent, counter, false));
  simulation.run_until_idle();
  simulation.kill(1);
  simulation.run_until_idle();
  EXPECT_THAT(*ask<Heard>(simulation, parent), ElementsAre(HasSubstr("killed")));
}

TEST(Link, OneFailsWithTheOther) {
  Simulation simulation(1, {.ranks = 2});
  const ActorRef counter = *simulation.system(1).spawn<Counter>("counter");
  const ActorRef parent = *simulation.system().spawn<Parent>("parent");
  ASSERT_TRUE(ask<Watch>(simulation, parent, counter, true));
  simulation.run_until_idle();
  EXPECT_FALSE(ask<Fail>(simulation, counter, "broken"));
  simulation.run_until_idle();
  EXPECT_EQ(ask<Heard>(simulation, parent).error().code, ErrorCode::actor_unreachable);
}

TEST(Link, WhatIsNotThereIsAsIfItHadStopped) {
  for (const std::uint32_t rank : {0U, 1U}) {
    Simulation simulation(1, {.ranks = 2});
    const ActorRef parent = *simulation.system().spawn<Parent>("parent");
    ASSERT_TRUE(ask<Watch>(simulation, parent, on(rank, "nobody"), true));
    simulation.run_until_idle();
    EXPECT_EQ(ask<Heard>(simulation, parent).error().code, ErrorCode::actor_unreachable) << "on rank " << rank;
  }
}

TEST(Link, HoldsWhereTheOthersRankLeavesInGoodOrder) {
  Simulation simulation(1, {.ranks = 2});
  const ActorRef counter = *simulation.system(1).spawn<Counter>("counter");
  const ActorRef parent = *simulation.system().spawn<Parent>("parent");
  ASSERT_TRUE(ask<Watch>(simulation, parent, counter, true));
  simulation.leave(1);
  simulation.run_until_idle();
  EXPECT_THAT(*ask<Heard>(simulation, parent), ElementsAre(HasSubstr("rank 1 has left")));
}

TEST(System, AnAskToARankThatLeavesFails) {
  Simulation simulation(1, {.ranks = 2});
  const ActorRef sleeper = *simulation.system(1).spawn<Sleeper>("sleeper");
  const ActorRef driver = *simulation.system().spawn<Driver>("driver");
  auto code = simulation.system().ask<AskWithin>(driver, sleeper, std::int64_t{3600'000'000'000});
  simulation.run_for(Time{1'000'000'000});
  simulation.leave(1);
  EXPECT_EQ(*get(simulation, std::move(code)), static_cast<int>(ErrorCode::peer_lost));
  EXPECT_LT(simulation.now(), Time{2'000'000'000});
}

TEST(System, TellingARankThatIsGoneIsAnError) {
  Simulation simulation(1, {.ranks = 2});
  simulation.leave(1);
  simulation.run_until_idle();
  EXPECT_EQ(simulation.system().tell<Add>(on(1, "counter"), 1).error().code, ErrorCode::peer_lost);
  EXPECT_EQ(simulation.system().ask<Add>(on(1, "counter"), 1).get().error().code, ErrorCode::peer_lost);
  EXPECT_EQ(simulation.system().tell<Add>(on(7, "counter"), 1).error().code, ErrorCode::actor_unreachable);
}

TEST(System, AnAskToALostRankFails) {
  Simulation simulation(1, {.ranks = 2});
  const ActorRef sleeper = *simulation.system(1).spawn<Sleeper>("sleeper");
  const ActorRef driver = *simulation.system().spawn<Driver>("driver");
  auto code = simulation.system().ask<AskWithin>(driver, sleeper, std::int64_t{3600'000'000'000});
  simulation.run_for(Time{1'000'000'000});
  simulation.kill(1);
  EXPECT_EQ(*get(simulation, std::move(code)), static_cast<int>(ErrorCode::peer_lost));
}

TEST(System, AHandlerMayStopItsActorAmongSeveralLostAsks) {
  Simulation simulation(1, {.ranks = 2});
  const ActorRef sleeper = *simulation.system(1).spawn<Sleeper>("sleeper");
  const ActorRef gives_up = *simulation.system().spawn<GivesUp>("gives up");
  ASSERT_TRUE(simulation.system().tell<AskTwice>(gives_up, sleeper));
  simulation.run_for(Time{1'000'000'000});
  simulation.kill(1);
  simulation.run_for(Time{60'000'000'000});
  EXPECT_EQ(simulation.system().tell<AskTwice>(gives_up, sleeper).error().code, ErrorCode::actor_unreachable);
}

TEST(System, AnswersAnAskThatItDoesNotKnow) {
  Simulation simulation(1, {.ranks = 2});
  const ActorRef driver = *simulation.system().spawn<Driver>("driver");
  EXPECT_EQ(*ask<AskWithin>(simulation, driver, ActorRef{kOutside, Rank{1}}, 3'600'000'000'000), static_cast<int>(ErrorCode::unsupported));
}

TEST(Supervision, ASupervisorThatWaitsStopsWhenItEscalates) {
  Simulation simulation(1);
  const ActorRef boss = *simulation.system().spawn<Boss>("boss", SpawnOptions{.children = {.strategy = Supervision::Strategy::one_for_one, .restarts_max = 0}});
  const ActorRef parent = *simulation.system().spawn<Parent>("parent");
  ASSERT_TRUE(ask<Watch>(simulation, parent, boss, false));
  ASSERT_TRUE(simulation.system().tell<Provoke>(boss));
  simulation.run_for(Time{60'000'000'000});
  EXPECT_THAT(*ask<Heard>(simulation, parent), ElementsAre(HasSubstr("on purpose")));
}

TEST(System, ACutHealsWithoutLoss) {
  Simulation simulation(1, {.ranks = 2});
  const ActorRef counter = *simulation.system(1).spawn<Counter>("counter");
  const ActorRef driver = *simulation.system().spawn<Driver>("driver");
  auto sums = simulation.system().ask<Drive>(driver, counter, 3);
  simulation.run_for(Time{100'000});
  simulation.cut(0, 1);
  simulation.run_for(Time{1'000'000'000});
  simulation.heal(0, 1);
  EXPECT_THAT(*get(simulation, std::move(sums)), ElementsAre(1, 3, 6));
}

TEST(System, ASenderHearsWhatIsUndeliverable) {
  Simulation simulation(1, {.ranks = 2});
  const ActorRef parent = *simulation.system().spawn<Parent>("parent");
  ASSERT_TRUE(ask<Parent::Tell>(simulation, parent, on(1, "nobody"), 1));
  simulation.run_until_idle();
  EXPECT_THAT(*ask<Heard>(simulation, parent), ElementsAre(HasSubstr("Add")));
}

TEST(BackPressure, OutsideIsRefusedWhenAMailboxIsFull) {
  Simulation simulation(1);
  const ActorRef counter = *simulation.system().spawn<Counter>("counter", SpawnOptions{.mailbox_capacity = 4});
  Result<void> sent;
  int accepted = 0;
  while ((sent = simulation.system().tell<Add>(counter, 1))) ++accepted;
  EXPECT_EQ(sent.error().code, ErrorCode::mailbox_full);
  EXPECT_EQ(accepted, 5);
  simulation.run_until_idle();
  EXPECT_TRUE(simulation.system().tell<Add>(counter, 1));
}

class BackPressureAcross : public ::testing::TestWithParam<std::uint32_t> {};

// A sender that fills a mailbox pauses after each message that meets it full, so the queue stays at the capacity and a handler's sends.
TEST_P(BackPressureAcross, KeepsQueuesBounded) {
  const std::uint32_t rank = GetParam();
  Simulation simulation(7, {.ranks = 2});
  ASSERT_TRUE(simulation.system(rank).spawn<Counter>("counter", SpawnOptions{.mailbox_capacity = 8}));
  const ActorRef parent = *simulation.system().spawn<Parent>("parent", SpawnOptions{.mailbox_capacity = 10'000});
  for (int i = 0; i < 400; ++i) ASSERT_TRUE(simulation.system().tell<Parent::Tell>(parent, on(rank, "counter"), 10));
  std::uint32_t deepest = 0;
  while (simulation.step()) {
    for (const System::ActorView& actor : simulation.system(rank).actors()) {
      if (actor.name == "counter") deepest = std::max(deepest, actor.queued);
    }
    if (simulation.now() > Time{60'000'000'000}) break;
  }
  EXPECT_EQ(*ask<Total>(simulation, on(rank, "counter")), 4000);
  EXPECT_LE(deepest, 8 + 10 + (rank == 0 ? 0 : Windows::kWindow)) << "the capacity, a handler's sends and, between ranks, a window";
}

/// Tells its partner as often as the message says, and passes the rest on.
struct Rally {
  ActorRef partner;
  int rounds = 0;
  TROUPE_FIELDS(partner, rounds)
};
class Rallying {
 public:
  void rally(Context& context, const Rally& message) {
    for (int i = 0; i < 20 && message.rounds > 0; ++i) context.tell<Rally>(message.partner, context.self(), i == 0 ? message.rounds - 1 : 0);
  }
  static void handlers(Handlers<Rallying>& on) { on.message<&Rallying::rally>(); }
};

TEST_P(BackPressureAcross, DoesNotStopTwoThatFillEachOther) {
  const std::uint32_t rank = GetParam();
  Simulation simulation(3, {.ranks = 2});
  ASSERT_TRUE(simulation.system(rank).spawn<Rallying>("there", SpawnOptions{.mailbox_capacity = 8}));
  ASSERT_TRUE(simulation.system().spawn<Rallying>("here", SpawnOptions{.mailbox_capacity = 8}));
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(simulation.system().tell<Rally>(on(0, "here"), on(rank, "there"), 100));
    ASSERT_TRUE(simulation.system(rank).tell<Rally>(on(rank, "there"), on(0, "here"), 100));
  }
  simulation.run_for(Time{20'000'000'000});
  EXPECT_EQ(simulation.system().delivered() + (rank == 0 ? 0 : simulation.system(rank).delivered()), 8U * (1 + 100 * 20));
}

/// Tells `to` a lot, and later answers it.
class Talkative {
 public:
  void told(Context& context, const Parent::Tell& message) {
    for (int i = 0; i < message.times; ++i) context.tell<Parent::Tell>(message.to, context.self(), 1);
  }
  int add(const Add& message) { return message.amount; }
  static void handlers(Handlers<Talkative>& on) { on.message<&Talkative::told>().message<&Talkative::add>(); }
};
class AsksBack {
 public:
  Task<> told(Context& context, const Parent::Tell& message) {
    const Result<int> sum = co_await context.ask<Add>(message.to, 1);
    if (!sum) throw ErrorException(sum.error());
  }
  static void handlers(Handlers<AsksBack>& on) { on.message<&AsksBack::told>(); }
};

TEST_P(BackPressureAcross, LetsASenderGoOnForWhomTheReceiverWaits) {
  const std::uint32_t rank = GetParam();
  Simulation simulation(5, {.ranks = 2});
  ASSERT_TRUE(simulation.system(rank).spawn<AsksBack>("asking", SpawnOptions{.mailbox_capacity = 8}));
  const ActorRef talkative = *simulation.system().spawn<Talkative>("talkative");
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(simulation.system().tell<Parent::Tell>(talkative, on(rank, "asking"), 100));
  simulation.run_for(Time{60'000'000'000});
  const std::vector<System::ActorView> actors = simulation.system(rank).actors();
  const auto asking = std::find_if(actors.begin(), actors.end(), [](const System::ActorView& actor) { return actor.name == "asking"; });
  EXPECT_EQ(asking->deliveries, 2 * 500U) << "each message, and the answer to its handler's ask";
}

// A timer for each deadline would stay until its time, hours after the answer.
TEST(System, ArmsNoTimerForADeadlineThatAnEarlierOneCovers) {
  Simulation simulation(1);
  ASSERT_TRUE(simulation.system().spawn<Counter>("counter"));
  const ActorRef driver = *simulation.system().spawn<Driver>("driver");
  for (int i = 0; i < 100; ++i) {
    std::future<Result<int>> code = simulation.system().ask<AskWithin>(driver, on(0, "counter"), std::int64_t{3'600'000'000'000} + i);
    simulation.run_until_idle(Time{0});
    EXPECT_EQ(*code.get(), 0);
  }
  EXPECT_LE(simulation.run_until_idle(Time{7'200'000'000'000}), 2U) << "one timer, and the turn of the actor that it wakes";
}
INSTANTIATE_TEST_SUITE_P(Ranks, BackPressureAcross, ::testing::Values(0, 1));

TEST(Simulation, ASeedRepeats) {
  const auto run = [](std::uint64_t seed) {
    Simulation simulation(seed, {.ranks = 3});
    const ActorRef counter = *simulation.system(2).spawn<Counter>("counter");
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      const ActorRef driver = *simulation.system(rank).spawn<Driver>("driver/" + std::to_string(rank));
      for (int i = 0; i < 5; ++i) (void)simulation.system(0).ask<Drive>(driver, counter, 3);
    }
    simulation.run_until_idle(Time{1'000'000'000});
    return simulation.now();
  };
  EXPECT_EQ(run(5), run(5));
  EXPECT_NE(run(5), run(6));
}

TEST(Pool, ChoosesMembers) {
  std::vector<ActorRef> members{on(0, "a"), on(0, "b"), on(0, "c")};
  Pool pool(members);
  EXPECT_THAT((std::vector{pool.round_robin(), pool.round_robin(), pool.round_robin(), pool.round_robin()}), ElementsAre(members[0], members[1], members[2], members[0]));
  EXPECT_EQ(pool.sticky(17), pool.sticky(17));
  EXPECT_EQ(pool.begin_least_loaded(), members[0]);
  EXPECT_EQ(pool.begin_least_loaded(), members[1]);
  pool.end(members[0]);
  EXPECT_EQ(pool.begin_least_loaded(), members[0]);
}

TEST(System, RunsOnThreads) {
  std::unique_ptr<Executor> executor = make_pool_executor(2);
  System system(*executor);
  const ActorRef counter = *system.spawn<Counter>("counter");
  const ActorRef own = *system.spawn<Counter>("own", SpawnOptions{.own_thread = true}, 0);
  std::vector<std::future<Result<std::vector<int>>>> sums;
  for (int i = 0; i < 4; ++i) sums.push_back(system.ask<Drive>(*system.spawn<Driver>("driver/" + std::to_string(i)), i % 2 == 0 ? counter : own, 1000));
  for (auto& each : sums) ASSERT_TRUE(each.get());
  EXPECT_EQ(*system.ask<Total>(counter).get(), 2 * 500'500);
}

TEST(System, ShowsItsActorsWhileTheyRunAndRestart) {
  std::unique_ptr<Executor> executor = make_pool_executor(2);
  System system(*executor);
  const SpawnOptions supervising{.children = {.strategy = Supervision::Strategy::one_for_one, .restarts_max = 1000, .backoff = Time{1}, .backoff_max = Time{1}}};
  const ActorRef parent = *system.spawn<Parent>("parent", supervising);
  ASSERT_TRUE(system.ask<SpawnChildren>(parent, 1, SpawnOptions{}).get());
  std::size_t alive = 0;
  for (int i = 0; i < 200; ++i) {
    std::future<Result<Done>> failed = system.ask<Fail>(system.ref("parent/0"), "again");
    while (failed.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      for (const System::ActorView& actor : system.actors()) alive += actor.actor != nullptr ? 1 : 0;
    }
    EXPECT_FALSE(failed.get());
  }
  EXPECT_EQ(*system.ask<Total>(system.ref("parent/0")).get(), 0);
  EXPECT_GT(alive, 0U);
}

}  // namespace
}  // namespace troupe::testing
