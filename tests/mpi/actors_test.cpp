// What tests/actors/system_test.cpp shows over simulated ranks, over real ones. Rank 0 drives; the others hold actors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/cast.hpp"
#include "mpi/stage.hpp"

namespace troupe::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::uint32_t last() { return stage.size() - 1; }

TEST(ActorsOverRanks, AnswerAsksAcrossRanks) {
  ASSERT_TRUE(stage.system->spawn<Counter>("ask/counter/" + std::to_string(index(stage.rank()))));
  ASSERT_TRUE(stage.system->spawn<Driver>("ask/driver/" + std::to_string(index(stage.rank()))));
  stage.barrier();
  if (stage.is_first()) {
    for (std::uint32_t rank = 0; rank < stage.size(); ++rank) {
      const ActorRef counter = stage.on(rank, "ask/counter/" + std::to_string(rank));
      const std::uint32_t other = (rank + 1) % stage.size();
      EXPECT_THAT(*stage.ask<Drive>(stage.on(other, "ask/driver/" + std::to_string(other)), counter, 4), ElementsAre(1, 3, 6, 10));
    }
  }
  stage.barrier();
}

TEST(ActorsOverRanks, KeepTheOrderOfAPair) {
  if (stage.rank() == Rank{last()}) {
    ASSERT_TRUE(stage.system->spawn<Counter>("order/counter", SpawnOptions{.mailbox_capacity = 100'000}));
  }
  stage.barrier();
  if (stage.is_first()) {
    for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(stage.system->tell<Add>(stage.on(last(), "order/counter"), 1));
    EXPECT_EQ(*stage.ask<Total>(stage.on(last(), "order/counter")), 10'000);
  }
  stage.barrier();
}

TEST(ActorsOverRanks, AreSpawnedOnAnotherRank) {
  if (stage.is_first()) {
    const ActorRef driver = *stage.system->spawn<Driver>("spawn/driver");
    EXPECT_EQ(*stage.ask<SpawnThere>(driver, Rank{last()}, "spawn/there"), 42);
    EXPECT_THAT(stage.ask<SpawnThere>(driver, Rank{last()}, "spawn/there").error().detail, HasSubstr("spawn/there"));
    EXPECT_EQ(*stage.ask<Total>(stage.on(last(), "spawn/there")), 42);
  }
  stage.barrier();
}

TEST(ActorsOverRanks, AnswerForActorsThatAreNotThere) {
  if (stage.is_first()) {
    EXPECT_EQ(stage.ask<Add>(stage.on(last(), "nobody"), 1).error().code, ErrorCode::actor_unreachable);
    const ActorRef parent = *stage.system->spawn<Parent>("nobody/parent");
    ASSERT_TRUE(stage.ask<Parent::Tell>(parent, stage.on(last(), "nobody"), 1));
    while (stage.ask<Heard>(parent)->empty()) std::this_thread::yield();
    EXPECT_THAT(*stage.ask<Heard>(parent), ElementsAre(HasSubstr("Add")));
  }
  stage.barrier();
}

TEST(ActorsOverRanks, MissADeadline) {
  if (stage.rank() == Rank{last()}) {
    ASSERT_TRUE(stage.system->spawn<Sleeper>("deadline/sleeper"));
  }
  stage.barrier();
  if (stage.is_first()) {
    const ActorRef driver = *stage.system->spawn<Driver>("deadline/driver");
    EXPECT_EQ(*stage.ask<AskWithin>(driver, stage.on(last(), "deadline/sleeper"), 50'000'000), static_cast<int>(ErrorCode::deadline_exceeded));
  }
  stage.barrier();
}

TEST(ActorsOverRanks, AreMonitoredAndLinked) {
  if (stage.rank() == Rank{last()}) {
    ASSERT_TRUE(stage.system->spawn<Counter>("watch/monitored"));
    ASSERT_TRUE(stage.system->spawn<Counter>("watch/linked"));
  }
  stage.barrier();
  if (stage.is_first()) {
    const ActorRef parent = *stage.system->spawn<Parent>("watch/parent");
    const ActorRef bound = *stage.system->spawn<Parent>("watch/bound");
    ASSERT_TRUE(stage.ask<Watch>(parent, stage.on(last(), "watch/monitored"), false));
    ASSERT_TRUE(stage.ask<Watch>(bound, stage.on(last(), "watch/linked"), true));
    // An answer from there says that what was sent before has arrived.
    EXPECT_EQ(*stage.ask<Total>(stage.on(last(), "watch/monitored")), 0);
    EXPECT_FALSE(stage.ask<Fail>(stage.on(last(), "watch/monitored"), "broken"));
    EXPECT_FALSE(stage.ask<Fail>(stage.on(last(), "watch/linked"), "broken"));
    while (stage.ask<Heard>(parent)->empty()) std::this_thread::yield();
    EXPECT_THAT(*stage.ask<Heard>(parent), ElementsAre(HasSubstr("broken")));
    while (stage.ask<Heard>(bound)) std::this_thread::yield();
  }
  stage.barrier();
}

/// Slower than any sender.
class SlowCounter {
 public:
  int add(const Add& message) {
    for (int i = 0; i < 4; ++i) block_[0] = digest64(std::as_bytes(std::span(block_)));
    return total_ += message.amount;
  }
  int total(const Total&) { return total_; }
  static void handlers(Handlers<SlowCounter>& on) { on.message<&SlowCounter::add>().message<&SlowCounter::total>(); }

 private:
  std::vector<std::uint64_t> block_ = std::vector<std::uint64_t>(8192, 1);
  int total_ = 0;
};

TEST(ActorsOverRanks, PauseBeforeAFullMailbox) {
  constexpr std::uint64_t kMessages = 20'000;
  constexpr std::uint32_t kCapacity = 64;
  constexpr int kBurst = 20;
  if (stage.rank() == Rank{last()}) {
    ASSERT_TRUE(stage.system->spawn<SlowCounter>("pressure/counter", SpawnOptions{.mailbox_capacity = kCapacity}));
  }
  stage.barrier();
  if (stage.is_first()) {
    const ActorRef parent = *stage.system->spawn<Parent>("pressure/parent", SpawnOptions{.mailbox_capacity = 10'000});
    for (std::uint64_t i = 0; i < kMessages / kBurst; ++i) ASSERT_TRUE(stage.system->tell<Parent::Tell>(parent, stage.on(last(), "pressure/counter"), kBurst));
  }
  if (stage.rank() == Rank{last()}) {
    std::uint32_t deepest = 0;
    for (std::uint64_t taken = 0; taken < kMessages; std::this_thread::yield()) {
      for (const System::ActorView& actor : stage.system->actors()) {
        if (actor.name != "pressure/counter") continue;
        deepest = std::max(deepest, actor.queued);
        taken = actor.deliveries;
      }
    }
    EXPECT_LE(deepest, kCapacity + Windows::kWindow + kBurst);
    EXPECT_GT(deepest, kCapacity) << "the sender was faster";
  }
  stage.barrier();
}

TEST(ActorsOverRanks, ServeAPool) {
  ASSERT_TRUE(stage.system->spawn<Counter>("pool/" + std::to_string(index(stage.rank()))));
  stage.barrier();
  if (stage.is_first()) {
    std::vector<ActorRef> members;
    for (std::uint32_t rank = 0; rank < stage.size(); ++rank) members.push_back(stage.on(rank, "pool/" + std::to_string(rank)));
    Pool pool(members);
    for (std::uint32_t i = 0; i < 3 * stage.size(); ++i) ASSERT_TRUE(stage.ask<Add>(pool.round_robin(), 1));
    for (const ActorRef member : members) EXPECT_EQ(*stage.ask<Total>(member), 3);
    for (std::uint32_t i = 0; i < stage.size(); ++i) ASSERT_TRUE(stage.ask<Add>(pool.begin_least_loaded(), 1));
    for (const ActorRef member : members) EXPECT_EQ(*stage.ask<Total>(member), 4);
    const ActorRef same = pool.sticky(7);
    EXPECT_EQ(*stage.ask<Add>(same, 10), 14);
    EXPECT_EQ(pool.sticky(7), same);
  }
  stage.barrier();
}

struct Blob {
  using Reply = std::uint64_t;
  std::vector<std::uint64_t> words;
  TROUPE_FIELDS(words)
};
class Digesting {
 public:
  std::uint64_t digest(const Blob& blob) { return digest64(std::as_bytes(std::span(blob.words))); }
  static void handlers(Handlers<Digesting>& on) { on.message<&Digesting::digest>(); }
};

TEST(ActorsOverRanks, SendLargeMessages) {
  if (stage.rank() == Rank{last()}) {
    ASSERT_TRUE(stage.system->spawn<Digesting>("large"));
  }
  stage.barrier();
  if (stage.is_first()) {
    Blob blob;
    for (std::uint64_t i = 0; i < (std::uint64_t{64} << 20) / 8; ++i) blob.words.push_back(i * i);
    const std::uint64_t wanted = digest64(std::as_bytes(std::span(blob.words)));
    EXPECT_EQ(*stage.ask<Blob>(stage.on(last(), "large"), blob), wanted);
  }
  stage.barrier();
}

}  // namespace
}  // namespace troupe::testing
