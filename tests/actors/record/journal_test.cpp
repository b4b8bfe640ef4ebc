#include "actors/record/journal.hpp"

#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "actors/base/digest.hpp"
#include "actors/record/messages.hpp"
#include "actors/record/recorder.hpp"
#include "actors/record/scratch.hpp"

namespace troupe::record {
namespace {

using namespace std::chrono_literals;

const JournalHeader kHeader{.format = kJournalFormat, .attempt = 2, .rank = 1, .run_id = "run-7"};

std::unique_ptr<Journal> open_journal(const std::filesystem::path& path, const JournalOptions& options = {}) {
  Result<std::unique_ptr<Journal>> journal = Journal::create(path, kHeader, options);
  EXPECT_TRUE(journal) << journal.error().detail;
  return std::move(*journal);
}

/// A small run: two actors, one message from outside, a clock read, a note, a state, a step.
void record_small_run(const std::filesystem::path& path, const Error& reason = {ErrorCode::ok, "done"}) {
  auto journal = open_journal(path);
  Recorder recorder(*journal);
  Scene scene(recorder);
  scene.spawn("ping", Rank{0});
  scene.spawn("pong", Rank{1});
  (void)scene.deliver("ping", "", Ping{.round = 1, .note = "start"});
  (void)scene.clock("ping", -5ns);
  (void)scene.deliver("pong", "ping", Ping{.round = 2, .note = ""}, EnvelopeKind::ask);
  (void)scene.note("pong", "logits", 77);
  (void)scene.state("pong", Pong{.values = {1, 2}});
  (void)scene.deliver("ping", "pong", Pong{.values = {1, 2, 3}}, EnvelopeKind::reply);
  recorder.mark_step(1);
  recorder.on_stop(actor_id("pong"), 0, {ErrorCode::cancelled, "stopped"});
  ASSERT_TRUE(journal->close(reason));
}

TEST(Journal, ReadsBackWhatWasRecorded) {
  Scratch scratch;
  record_small_run(scratch.path() / "j");
  const Result<JournalTables> read = read_journal(scratch.path() / "j");
  ASSERT_TRUE(read) << read.error().detail;
  EXPECT_EQ(read->header.attempt, 2U);
  EXPECT_EQ(read->header.rank, 1U);
  EXPECT_EQ(read->header.run_id, "run-7");
  EXPECT_EQ(read->actors.name, (std::vector<std::string>{"", "ping", "pong"}));
  EXPECT_EQ(read->actors.rank[2], 1U);
  EXPECT_EQ(read->deliveries.actor, (std::vector<std::uint32_t>{1, 2, 1}));
  EXPECT_EQ(read->deliveries.number, (std::vector<std::uint64_t>{0, 0, 1}));
  EXPECT_EQ(read->deliveries.sender, (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(read->deliveries.kind, (std::vector<std::uint8_t>{0, 1, 2}));
  EXPECT_EQ(read->deliveries.fields_end, (std::vector<std::uint64_t>{2, 4, 5}));
  EXPECT_EQ(read->deliveries.digest[1], content_digest(Ping{.round = 2, .note = ""}).whole);
  EXPECT_EQ(read->clocks.time_ns, (std::vector<std::int64_t>{-5}));
  EXPECT_EQ(read->notes.digest, (std::vector<std::uint64_t>{77}));
  EXPECT_EQ(read->states.digest[0], content_digest(Pong{.values = {1, 2}}).whole);
  EXPECT_EQ(read->stops.detail, (std::vector<std::string>{"stopped"}));
  EXPECT_EQ(read->steps.deliveries, (std::vector<std::uint64_t>{3}));
  EXPECT_EQ(read->end_reason, "done");
  EXPECT_EQ(read->cut_bytes, 0U);
}

TEST(Journal, KeepsThePayloadOfOutsideMessagesOnly) {
  Scratch scratch;
  record_small_run(scratch.path() / "j");
  const JournalTables read = *read_journal(scratch.path() / "j");
  ASSERT_EQ(read.payloads.sender, (std::vector<std::uint32_t>{0}));
  const auto message = decode<Ping>(read.payloads.data);
  ASSERT_TRUE(message);
  EXPECT_EQ(message->note, "start");
}

TEST(Journal, SplitsLargePayloads) {
  Scratch scratch;
  auto journal = open_journal(scratch.path() / "j");
  Recorder recorder(*journal);
  Scene scene(recorder);
  std::string large(3 * kPayloadPieceBytes + 1, 'x');
  large.back() = 'y';
  ASSERT_TRUE(scene.deliver("a", "", Ping{.round = 0, .note = large}));
  ASSERT_TRUE(journal->flush());
  const JournalTables read = *read_journal(scratch.path() / "j");
  EXPECT_EQ(decode<Ping>(read.payloads.data)->note, large);
}

TEST(Journal, ReadsUpToTheLastWholeEntryOfEveryLength) {
  Scratch scratch;
  record_small_run(scratch.path() / "j");
  const std::string whole = read_text(scratch.path() / "j");
  std::size_t deliveries = 0;
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    write_text(scratch.path() / "cut", whole.substr(0, length));
    const Result<JournalTables> read = read_journal(scratch.path() / "cut");
    ASSERT_TRUE(read) << "cut to " << length << ": " << read.error().detail;
    EXPECT_EQ(read->journal_bytes + read->cut_bytes, length);
    EXPECT_GE(read->deliveries.actor.size(), deliveries);
    deliveries = read->deliveries.actor.size();
    EXPECT_EQ(read->ended, length == whole.size());
  }
  EXPECT_EQ(deliveries, 3U);
}

TEST(Journal, FindsEveryFlippedByteAndNamesTheOffset) {
  Scratch scratch;
  record_small_run(scratch.path() / "j");
  const std::string whole = read_text(scratch.path() / "j");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    write_text(scratch.path() / "flipped", flipped(whole, i));
    const Result<JournalTables> read = read_journal(scratch.path() / "flipped");
    ASSERT_FALSE(read) << "byte " << i;
    EXPECT_EQ(read.error().code, ErrorCode::corrupt);
    EXPECT_NE(read.error().detail.find("at byte"), std::string::npos) << read.error().detail;
  }
}

// Entries whose checks hold and whose fields are noise: an error or not, but nothing else.
TEST(Journal, SurvivesForgedEntries) {
  Scratch scratch;
  record_small_run(scratch.path() / "j");
  const std::string whole = read_text(scratch.path() / "j");
  std::minstd_rand random(9);
  for (int round = 0; round < 3000; ++round) {
    Bytes forged;
    FrameWriter writer(forged);
    writer.begin(static_cast<EntryType>(1 + random() % 13));
    for (auto length = random() % 40; length > 0; --length)
      writer.byte(static_cast<std::uint8_t>(random() % 4 == 0 ? random() : random() % 3));
    writer.end();
    write_text(scratch.path() / "forged", whole + std::string(reinterpret_cast<const char*>(forged.data()), forged.size()));
    const Result<JournalTables> read = read_journal(scratch.path() / "forged");
    EXPECT_TRUE(read || read.error().code == ErrorCode::corrupt);
  }
}

TEST(Journal, TakesZerosAtItsEndForACut) {
  Scratch scratch;
  record_small_run(scratch.path() / "j");
  write_text(scratch.path() / "zeros", read_text(scratch.path() / "j") + std::string(100, '\0'));
  const Result<JournalTables> read = read_journal(scratch.path() / "zeros");
  ASSERT_TRUE(read) << read.error().detail;
  EXPECT_EQ(read->cut_bytes, 100U);
}

TEST(Journal, IsReadWhileItIsWritten) {
  Scratch scratch;
  auto journal = open_journal(scratch.path() / "j");
  Recorder recorder(*journal);
  Scene scene(recorder);
  for (std::uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(scene.deliver("a", "b", Ping{.round = i, .note = ""}));
    ASSERT_TRUE(journal->flush());
    EXPECT_EQ(read_journal(scratch.path() / "j")->deliveries.actor.size(), i + 1);
  }
}

TEST(Journal, KeepsEachThreadsOrder) {
  Scratch scratch;
  auto journal = open_journal(scratch.path() / "j", {.flush_every = 1ms, .flush_bytes = 4096, .buffered_bytes_max = 8192});
  Recorder recorder(*journal);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Scene scene(recorder);
      const std::string name = "actor/" + std::to_string(t);
      for (std::uint64_t i = 0; i < 5000; ++i) (void)scene.deliver(name, name, Ping{.round = i, .note = ""});
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(journal->close({ErrorCode::ok, ""}));
  const JournalTables read = *read_journal(scratch.path() / "j");
  std::vector<std::uint64_t> next(read.actors.id.size());
  for (std::size_t i = 0; i < read.deliveries.actor.size(); ++i) EXPECT_EQ(read.deliveries.number[i], next[read.deliveries.actor[i]]++);
  EXPECT_EQ(read.deliveries.actor.size(), 20000U);
}

TEST(Journal, TellsOfAFullDisk) {
  Scratch scratch;
  auto journal = open_journal(scratch.path() / "j");
  Recorder recorder(*journal);
  Scene scene(recorder);
  const Result<void> synced = with_files_of_at_most(1000, [&] {
    for (std::uint64_t i = 0; i < 100; ++i) (void)scene.deliver("a", "b", Ping{.round = i, .note = ""});
    return journal->sync();
  });
  ASSERT_FALSE(synced);
  EXPECT_EQ(synced.error().code, ErrorCode::io);
  const Result<void> next = scene.deliver("a", "b", Ping{});
  ASSERT_FALSE(next);
  EXPECT_NE(next.error().detail.find("the record cannot be written"), std::string::npos);
  EXPECT_TRUE(read_journal(scratch.path() / "j"));
}

TEST(Journal, RefusesAFileThatIsThere) {
  Scratch scratch;
  write_text(scratch.path() / "j", "x");
  EXPECT_FALSE(Journal::create(scratch.path() / "j", kHeader));
  EXPECT_FALSE(Journal::create("/nowhere/j", kHeader));
}

TEST(Journal, CountsWhatItCosts) {
  Scratch scratch;
  auto journal = open_journal(scratch.path() / "j");
  Recorder recorder(*journal);
  Scene scene(recorder);
  for (std::uint64_t i = 0; i < 100; ++i) (void)scene.deliver("a", "b", Ping{.round = i, .note = ""});
  ASSERT_TRUE(journal->flush());
  EXPECT_GT(journal->cost().in_actors, 0ns);
  EXPECT_GT(journal->cost().in_writer, 0ns);
  EXPECT_EQ(journal->cost().bytes, std::filesystem::file_size(scratch.path() / "j"));
}

TEST(Journal, TakesAtMost40BytesForASmallDelivery) {
  Scratch scratch;
  auto journal = open_journal(scratch.path() / "j");
  Recorder recorder(*journal);
  Scene scene(recorder);
  (void)scene.deliver("a", "b", Ping{.round = 0, .note = ""});
  const std::uint64_t before = journal->cost().bytes;
  for (std::uint64_t i = 1; i <= 1000; ++i) (void)scene.deliver("a", "b", Ping{.round = i, .note = "some text"});
  EXPECT_LE(journal->cost().bytes - before, 40'000U);
}

// The hexadecimal bytes of journal.md's example: two digits each, in lines that begin with four spaces.
std::string worked_example() {
  std::string bytes;
  std::istringstream lines(read_text(TROUPE_SOURCE_DIR "/actors/record/journal.md"));
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    inside = inside || line.starts_with("## Worked example");
    if (!inside || !line.starts_with("    ")) continue;
    std::istringstream words(line.substr(0, line.starts_with("                 ") ? 0 : 200));
    for (std::string word; words >> word && word.size() == 2 && word.find_first_not_of("0123456789abcdef") == std::string::npos;) {
      bytes += static_cast<char>(std::stoi(word, nullptr, 16));
    }
  }
  return bytes;
}

/// A microsecond later at every look.
std::chrono::nanoseconds ticking() {
  static std::chrono::microseconds now{0};
  return ++now;
}

TEST(Journal, HasTheBytesOfTheWorkedExample) {
  Scratch scratch;
  auto journal = *Journal::create(scratch.path() / "j", {.format = kJournalFormat, .attempt = 1, .rank = 0, .run_id = "r"});
  Recorder recorder(*journal, RecordLevel::order, &ticking);
  Scene scene(recorder);
  scene.spawn("a");
  ASSERT_TRUE(scene.deliver("a", "b", Ping{.round = 1, .note = ""}));
  ASSERT_TRUE(recorder.on_begin_step(actor_id("a"), 0, 1));
  recorder.mark_step(1);
  ASSERT_TRUE(journal->close({ErrorCode::ok, "done"}));
  EXPECT_EQ(read_text(scratch.path() / "j"), worked_example());
}

}  // namespace
}  // namespace troupe::record
