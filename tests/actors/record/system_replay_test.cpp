#include <gtest/gtest.h>

#include "actors/actor.hpp"
#include "actors/record/history.hpp"
#include "actors/record/recorder.hpp"
#include "actors/record/replay.hpp"
#include "actors/record/run_record.hpp"
#include "actors/record/scratch.hpp"
#include "actors/simulation.hpp"

// Real actors whose result depends on the order of messages, on clock reads and on timers, recorded on three simulated ranks.
namespace troupe::record {
namespace {

struct Entry {
  std::string from;
  std::int64_t time_ns = 0;
  TROUPE_FIELDS(from, time_ns)
};
struct Count {
  using Reply = int;
  TROUPE_NO_FIELDS()
};
struct Talk {
  int times = 0;
  TROUPE_FIELDS(times)
};

/// Keeps what everyone says, in the order of arrival.
class Log {
 public:
  void entry(Context& context, const Entry& entry) { lines_.push_back(entry.from + " at " + std::to_string(context.now().count())); }
  int count(const Count&) { return static_cast<int>(lines_.size()); }
  static void handlers(Handlers<Log>& on) { on.message<&Log::entry>().message<&Log::count>(); }
  TROUPE_FIELDS(lines_)

 private:
  std::vector<std::string> lines_;
};

/// Says something, asks how much was said, and goes on after a while.
class Talker {
 public:
  Talker() = default;
  explicit Talker(int skew) : skew_(skew) {}
  Task<void> talk(Context& context, Talk talk) {
    if (talk.times == 0) co_return;
    context.tell<Entry>(context.ref("log"), std::string(context.name()), context.now().count() + skew_);
    const Result<int> count = co_await context.ask<Count>(context.ref("log"));
    counts_.push_back(count ? *count : -1);
    context.note("counts", counts_);
    context.after<Talk>(Time{1'000 + static_cast<std::int64_t>(context.random() % 1000)}, talk.times - 1);
  }
  static void handlers(Handlers<Talker>& on) { on.message<&Talker::talk>(); }
  TROUPE_FIELDS(counts_)

 private:
  std::vector<int> counts_;
  int skew_ = 0;
};

const std::vector<std::string> kNames{"log", "talker/0", "talker/1", "talker/2"};

SimulationOptions options_of(std::uint32_t ranks) {
  SimulationOptions options;
  options.ranks = ranks;
  options.system.seed = 5;
  for (std::size_t i = 0; i < kNames.size(); ++i)
    options.system.directory[actor_id(kNames[i])] = Rank{static_cast<std::uint32_t>(i) % ranks};
  return options;
}

void spawn_all(Simulation& simulation, std::uint32_t ranks, int skew = 0) {
  for (std::uint32_t i = 0; i < kNames.size(); ++i) {
    System& system = simulation.system(i % ranks);
    if (i == 0)
      ASSERT_TRUE(system.spawn<Log>(kNames[i]));
    else
      ASSERT_TRUE(system.spawn<Talker>(kNames[i], skew));
  }
}

std::uint64_t state_digest(Simulation& simulation, std::uint32_t ranks) {
  std::map<std::string, std::uint64_t> digests;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    for (const System::ActorView& view : simulation.system(rank).actors())
      digests[std::string(view.name)] = view.actor_class->digest(view.actor).whole;
  }
  return content_digest(digests).whole;
}

/// Records a run on three ranks; returns the digest of all its actors' states.
std::uint64_t record_talk(const std::filesystem::path& folder, std::uint64_t seed) {
  RunInfo info;
  info.run_id = "talk";
  RunRecord record = *RunRecord::create(folder, info);
  EXPECT_TRUE(record.begin_attempt(0, 1));
  auto journal = *create_journal(folder, "talk", 1, 0);
  Recorder recorder(*journal);
  SimulationOptions options = options_of(3);
  options.system.observer = &recorder;
  std::uint64_t digest = 0;
  {
    Simulation simulation(seed, options);
    spawn_all(simulation, 3);
    for (std::size_t i = 1; i < kNames.size(); ++i) EXPECT_TRUE(simulation.system().tell<Talk>(simulation.system().ref(kNames[i]), 5));
    simulation.run_until_idle();
    digest = state_digest(simulation, 3);
  }
  EXPECT_TRUE(journal->close({ErrorCode::ok, "done"}));
  EXPECT_TRUE(record.seal(""));
  return digest;
}

struct Replayed {
  Result<void> outcome;
  std::uint64_t digest = 0;
  std::uint64_t deliveries = 0;
};

Replayed replay_talk(const std::filesystem::path& folder, std::uint32_t ranks, std::uint64_t seed, int skew = 0) {
  const History history = *read_history(folder);
  const Segment& segment = history.line.front();
  ReplayGate gate(segment);
  ReplayChecker checker(segment);
  SimulationOptions options = options_of(ranks);
  options.system.observer = &checker;
  options.system.gate = &gate;
  Simulation simulation(seed, options);
  spawn_all(simulation, ranks, skew);
  for (const RecordedPayload& outside : segment.outside) {
    Result<EnvelopePtr> message = find_message_type(outside.type)->decode(outside.payload);
    EXPECT_TRUE(message);
    simulation.system().inject({outside.to, kRankUnknown}, std::move(*message), outside.kind, outside.origin);
  }
  simulation.run_until_idle();
  return {.outcome = checker.finish(), .digest = state_digest(simulation, ranks), .deliveries = checker.counts().deliveries};
}

TEST(SystemReplay, GivesTheSameStateOnAnyNumberOfRanks) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    Scratch scratch;
    const std::uint64_t recorded = record_talk(scratch.path(), seed);
    for (std::uint32_t ranks = 1; ranks <= 4; ++ranks) {
      const Replayed replayed = replay_talk(scratch.path(), ranks, seed + 100);
      ASSERT_TRUE(replayed.outcome) << replayed.outcome.error().detail;
      EXPECT_EQ(replayed.digest, recorded) << ranks << " ranks, seed " << seed;
      EXPECT_GT(replayed.deliveries, 60U);
    }
  }
}

TEST(SystemReplay, DependsOnTheRecordAndNotOnLuck) {
  Scratch one, other;
  EXPECT_NE(record_talk(one.path(), 1), record_talk(other.path(), 2));
}

TEST(SystemReplay, NamesTheFieldThatACodeChangeAlters) {
  Scratch scratch;
  (void)record_talk(scratch.path(), 1);
  const Replayed replayed = replay_talk(scratch.path(), 2, 7, 3);
  ASSERT_FALSE(replayed.outcome);
  EXPECT_EQ(replayed.outcome.error().code, ErrorCode::divergence);
  EXPECT_NE(replayed.outcome.error().detail.find("actor log, message 0, "), std::string::npos) << replayed.outcome.error().detail;
  EXPECT_NE(replayed.outcome.error().detail.find("field time_ns: recorded digest"), std::string::npos) << replayed.outcome.error().detail;
}

}  // namespace
}  // namespace troupe::record
