#include "actors/record/replay.hpp"

#include <gtest/gtest.h>

#include "actors/record/runs.hpp"

namespace troupe::record {
namespace {

using namespace std::chrono_literals;

class Replay : public testing::Test {
 protected:
  Replay() {
    record_finished_run(scratch_.path());
    history_ = *read_history(scratch_.path());
  }
  const Segment& segment() const { return history_.line.front(); }
  /// Steps 1 … 3 as recorded, but for what the test changes before or after.
  static Result<void> rerun(ToyRun& run, std::uint64_t last = 3) {
    Result<void> done = run.start();
    for (std::uint64_t step = 1; step <= last && done; ++step) done = run.step(step);
    return done;
  }

  Scratch scratch_;
  History history_;
};

void expect_divergence(const Result<void>& result, std::string_view part) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::divergence);
  EXPECT_NE(result.error().detail.find(part), std::string::npos) << result.error().detail;
}

TEST_F(Replay, AcceptsTheSameRun) {
  ReplayChecker checker(segment());
  ToyRun run(checker, checker);
  ASSERT_TRUE(rerun(run));
  EXPECT_TRUE(checker.complete());
  ASSERT_TRUE(checker.finish()) << checker.finish().error().detail;
  EXPECT_EQ(checker.counts().deliveries, 7U);
  EXPECT_EQ(checker.counts().clock_reads, 3U);
  EXPECT_EQ(checker.counts().notes, 3U);
  EXPECT_EQ(checker.counts().states, 3U);
}

TEST_F(Replay, AcceptsTheSameRunSpreadOverOtherRanks) {
  ReplayChecker one(segment()), two(segment());
  ToyRun run(one, two);
  ASSERT_TRUE(rerun(run));
  EXPECT_TRUE(one.finish());
  EXPECT_TRUE(two.finish());
  EXPECT_EQ(one.counts().deliveries, 4U);
  EXPECT_EQ(two.counts().deliveries, 3U);
}

TEST_F(Replay, GivesTheRecordedOrder) {
  ReplayGate gate(segment());
  const auto first = gate.next(actor_id("driver"), 0);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->origin, (Origin{.sender = kOutside, .sequence = 0}));
  EXPECT_EQ(gate.next(actor_id("driver"), 3)->origin, (Origin{.sender = actor_id("worker"), .sequence = 2}));
  EXPECT_EQ(gate.next(actor_id("driver"), 3)->kind, EnvelopeKind::reply);
  EXPECT_FALSE(gate.next(actor_id("driver"), 4));
  EXPECT_FALSE(gate.next(actor_id("nobody"), 0));
}

TEST_F(Replay, GivesTheRecordedTimes) {
  ReplayChecker checker(segment());
  Scene scene(checker);
  scene.spawn("worker");
  Scene driver(checker);
  ASSERT_TRUE(scene.deliver("worker", "driver", Ping{.round = 1, .note = "work"}, EnvelopeKind::ask));
  EXPECT_EQ(*scene.clock("worker", 999999ns), 1000ns);
}

TEST_F(Replay, NamesActorMessageTypeAndFieldOfAChangedMessage) {
  ReplayChecker checker(segment());
  ToyRun run(checker, checker);
  ASSERT_TRUE(rerun(run, 1));
  const Result<void> changed = run.step(2, "other work");
  expect_divergence(changed, "actor worker, message 1, troupe::record::Ping, field note: recorded digest ");
  expect_divergence(changed, "(\"other work\")");
  EXPECT_EQ(run.step(3).error().detail, changed.error().detail) << "the first divergence stays";
  EXPECT_EQ(checker.finish().error().detail, changed.error().detail);
}

TEST_F(Replay, NamesAnInsertedClockRead) {
  ReplayChecker checker(segment());
  Scene scene(checker);
  scene.spawn("driver");
  ASSERT_TRUE(scene.deliver("driver", "", Ping{.round = 0, .note = "start"}));
  const Result<Time> read = scene.clock("driver", 5ns);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().detail, "actor driver, message 0, troupe::record::Ping, clock: recorded no such read, got one");
}

TEST_F(Replay, NamesAClockReadThatIsGone) {
  ReplayChecker checker(segment());
  Scene scene(checker);
  scene.spawn("worker");
  ASSERT_TRUE(scene.deliver("worker", "driver", Ping{.round = 1, .note = "work"}, EnvelopeKind::ask));
  expect_divergence(scene.deliver("worker", "driver", Ping{.round = 2, .note = "work"}, EnvelopeKind::ask),
                    "actor worker, message 0, troupe::record::Ping, clock: recorded a read, got none");
}

TEST_F(Replay, NamesAChangedNoteAndAChangedField) {
  ReplayChecker first(segment());
  Scene scene(first);
  scene.spawn("worker");
  ASSERT_TRUE(scene.deliver("worker", "driver", Ping{.round = 1, .note = "work"}, EnvelopeKind::ask));
  ASSERT_TRUE(scene.clock("worker", 0ns));
  expect_divergence(scene.note("worker", "logits", 8),
                    "message 0, troupe::record::Ping, note logits: recorded digest 0000000000000007, got 0000000000000008");
}

TEST_F(Replay, NamesTheFieldOfAChangedState) {
  ReplayChecker checker(segment());
  Scene scene(checker);
  scene.spawn("worker");
  ASSERT_TRUE(scene.deliver("worker", "driver", Ping{.round = 1, .note = "work"}, EnvelopeKind::ask));
  ASSERT_TRUE(scene.clock("worker", 0ns));
  ASSERT_TRUE(scene.note("worker", "logits", 7));
  expect_divergence(scene.state("worker", Ping{.round = 2, .note = "state"}), "state field round: recorded digest");
}

TEST_F(Replay, NamesAnotherOriginAndAnotherType) {
  ReplayChecker origin(segment()), type(segment());
  Scene scene(origin), other(type);
  expect_divergence(scene.deliver("worker", "driver", Ping{.round = 1, .note = "work"}),
                    "origin: recorded ask 0 of driver, got tell 0 of driver");
  expect_divergence(other.deliver("worker", "driver", Pong{.values = {1}}, EnvelopeKind::ask),
                    "message 0, troupe::record::Ping, type: recorded troupe::record::Ping, got troupe::record::Pong");
}

TEST_F(Replay, NamesAMessageTooManyAndAnActorTooMany) {
  ReplayChecker checker(segment());
  ToyRun run(checker, checker);
  ASSERT_TRUE(rerun(run));
  expect_divergence(run.step(4), "actor worker, message 3: recorded 3 messages, got troupe::record::Ping after them");
  ReplayChecker other(segment());
  Scene scene(other);
  expect_divergence(scene.deliver("stranger", "", Ping{}), "actor stranger, message 0: recorded no such actor");
}

TEST_F(Replay, NamesAMessageTooFew) {
  ReplayChecker checker(segment());
  ToyRun run(checker, checker);
  ASSERT_TRUE(rerun(run, 2));
  EXPECT_FALSE(checker.complete());
  const Result<void> end = checker.finish();
  ASSERT_FALSE(end);
  EXPECT_NE(end.error().detail.find("recorded"), std::string::npos) << end.error().detail;
}

TEST(History, KeepsOutsideMessagesWithTheirContent) {
  Scratch scratch;
  record_finished_run(scratch.path());
  const History history = *read_history(scratch.path());
  ASSERT_EQ(history.line.size(), 1U);
  EXPECT_TRUE(history.line[0].whole);
  EXPECT_EQ(history.line[0].deliveries(), 7U);
  ASSERT_EQ(history.line[0].outside.size(), 1U);
  const RecordedPayload& start = history.line[0].outside[0];
  EXPECT_EQ(start.to, actor_id("driver"));
  EXPECT_EQ(start.type_name, type_name<Ping>());
  EXPECT_EQ(decode<Ping>(start.payload)->note, "start");
}

TEST(History, FollowsTheLineThroughAResumedRunAndListsDeadBranches) {
  Scratch scratch;
  record_killed_run(scratch.path());  // steps 1 … 4, checkpoint of 2
  RunRecord record = *RunRecord::open(scratch.path());
  record_attempt(record, 2, 3, 2, std::nullopt);  // resumed and killed again, no checkpoint
  record_attempt(record, 2, 5, 5, Error{ErrorCode::ok, "done"});
  ASSERT_TRUE(record.seal(""));
  const Result<History> history = read_history(scratch.path());
  ASSERT_TRUE(history) << history.error().detail;
  ASSERT_EQ(history->line.size(), 2U);
  EXPECT_EQ(history->line[0].attempt, 1U);
  EXPECT_EQ(history->line[0].end_step, 2U);
  EXPECT_TRUE(history->line[0].whole);
  EXPECT_EQ(history->line[0].find(actor_id("worker"))->deliveries.size(), 2U);
  EXPECT_EQ(history->line[0].find(actor_id("worker"))->clocks.size(), 2U);
  EXPECT_EQ(history->line[1].attempt, 3U);
  EXPECT_EQ(history->line[1].start_step, 2U);
  EXPECT_EQ(history->line[1].end_step, 5U);
  ASSERT_EQ(history->dead.size(), 2U);
  EXPECT_EQ(history->dead[0].from_step, 2U);
  EXPECT_EQ(history->dead[0].to_step, 4U);
  EXPECT_EQ(history->dead[1].attempt, 2U);
  EXPECT_EQ(read_attempt(scratch.path(), history->manifest, 1)->end_step, 4U) << "the dead branch stays readable";
}

// A kill right behind a checkpoint, before the handler that asked for it had ended.
TEST(History, ForgivesWhatAKillLostBehindTheMarkOfACheckpoint) {
  Scratch scratch;
  RunRecord record = *RunRecord::create(scratch.path(), info());
  ASSERT_TRUE(record.begin_attempt(0, 1));
  {
    auto journal = *create_journal(scratch.path(), "run-7", 1, 0);
    Recorder recorder(*journal);
    Scene scene(recorder);
    scene.spawn("driver");
    ASSERT_TRUE(scene.deliver("driver", "", Ping{.round = 1}));
    recorder.mark_step(1);
    ASSERT_TRUE(record.add_checkpoint(1, to_value(1), "weights"));
  }
  ASSERT_TRUE(record.begin_attempt(1, 1));
  const History history = *read_history(scratch.path());
  ASSERT_EQ(history.line.size(), 2U);
  ReplayChecker checker(history.line[0]);
  Scene scene(checker);
  scene.spawn("driver");
  ASSERT_TRUE(scene.deliver("driver", "", Ping{.round = 1}));
  EXPECT_TRUE(scene.clock("driver", Time(3)));
  EXPECT_TRUE(scene.note("driver", "late", 1));
  EXPECT_TRUE(scene.state("driver", Ping{}));
  EXPECT_TRUE(checker.finish());
  expect_divergence(scene.deliver("driver", "", Ping{.round = 2}), "recorded 1 messages");
}

TEST(History, ReadsAKilledRunAtEveryCutOfAJournal) {
  Scratch scratch;
  record_killed_run(scratch.path());
  const auto journal = scratch.path() / journal_path(1, 1);
  const std::string whole = read_text(journal);
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    write_text(journal, whole.substr(0, length));
    const Result<History> history = read_history(scratch.path());
    ASSERT_TRUE(history) << length << ": " << history.error().detail;
    EXPECT_FALSE(history->line[0].whole);
    // What is left of the worker is whole: all that its handlers read and noted is there.
    const ActorHistory* worker = history->line[0].find(actor_id("worker"));
    if (worker == nullptr) continue;
    EXPECT_EQ(worker->clocks.size(), worker->deliveries.size()) << length;
    EXPECT_EQ(worker->states.size(), worker->deliveries.size()) << length;
  }
}

TEST(History, KeepsEveryPayloadAtLevelFull) {
  Scratch scratch;
  RunRecord record = *RunRecord::create(scratch.path(), info());
  ASSERT_TRUE(record.begin_attempt(0, 1));
  auto journal = *create_journal(scratch.path(), "run-7", 1, 0);
  Recorder recorder(*journal, RecordLevel::full);
  ToyRun run(recorder, recorder);
  ASSERT_TRUE(run.start());
  ASSERT_TRUE(run.step(1));
  ASSERT_TRUE(journal->close({ErrorCode::ok, ""}));
  const History history = *read_history(scratch.path());
  ASSERT_EQ(history.line[0].payloads.size(), 2U);
  for (const RecordedPayload& payload : history.line[0].payloads) {
    if (payload.to != actor_id("driver")) continue;
    EXPECT_EQ(decode<Pong>(payload.payload)->values, std::vector<float>{1});
  }
}

TEST(History, RefusesAnotherRunsJournal) {
  Scratch scratch;
  RunRecord record = *RunRecord::create(scratch.path(), info());
  ASSERT_TRUE(record.begin_attempt(0, 1));
  ASSERT_TRUE(create_journal(scratch.path(), "run-8", 1, 0));
  const Result<History> history = read_history(scratch.path());
  ASSERT_FALSE(history);
  EXPECT_NE(history.error().detail.find("want a journal of run run-7"), std::string::npos) << history.error().detail;
  EXPECT_FALSE(read_history(scratch.path(), 2));
}

}  // namespace
}  // namespace troupe::record
