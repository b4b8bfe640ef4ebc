#include "actors/record/run_record.hpp"

#include <gtest/gtest.h>

#include "actors/record/history.hpp"
#include "actors/record/messages.hpp"
#include "actors/record/recorder.hpp"
#include "actors/record/runs.hpp"
#include "actors/record/scratch.hpp"

namespace troupe::record {
namespace {

namespace fs = std::filesystem;

TEST(RunRecord, SealsJournalsOnACleanEnd) {
  Scratch scratch;
  record_finished_run(scratch.path());
  const Result<Manifest> manifest = read_manifest(scratch.path());
  ASSERT_TRUE(manifest) << manifest.error().detail;
  EXPECT_TRUE(manifest->finished);
  EXPECT_EQ(manifest->summary, "{\"state\": \"done\"}");
  ASSERT_EQ(manifest->attempts.size(), 1U);
  EXPECT_EQ(manifest->attempts[0].last_step, 3U);
  EXPECT_EQ(manifest->attempts[0].exits[1].reason, "done");
  EXPECT_FALSE(fs::exists(scratch.path() / "journals"));
  EXPECT_TRUE(fs::exists(scratch.path() / "record/0001-0001.h5"));
  ASSERT_EQ(manifest->actors.size(), 2U);
  EXPECT_EQ(manifest->actors[0].name, "driver");
  EXPECT_EQ(manifest->actors[0].deliveries, 4U);
  ASSERT_EQ(manifest->messages.size(), 2U);
  EXPECT_EQ(manifest->messages[0].count, 4U);
}

TEST(RunRecord, KeepsCheckpointsOfStepZeroTheNewestAndOfAttemptsStarts) {
  Scratch scratch;
  RunRecord record = *RunRecord::create(scratch.path(), info());
  ASSERT_TRUE(record.begin_attempt(0, 1));
  for (std::uint64_t step = 0; step <= 4; ++step) ASSERT_TRUE(record.add_checkpoint(step, to_value(step), "d"));
  ASSERT_TRUE(record.begin_attempt(4, 1));
  for (std::uint64_t step = 5; step <= 8; ++step) ASSERT_TRUE(record.add_checkpoint(step, to_value(step), "d"));
  ASSERT_TRUE(record.keep(2));
  std::vector<std::uint64_t> steps;
  for (const CheckpointEntry& entry : record.checkpoints()) steps.push_back(entry.step);
  EXPECT_EQ(steps, (std::vector<std::uint64_t>{0, 4, 7, 8}));
  EXPECT_FALSE(fs::exists(scratch.path() / checkpoint_path(5)));
  EXPECT_TRUE(verify(scratch.path())) << verify(scratch.path()).error().detail;
}

TEST(RunRecord, LoadsACheckpointAndRefusesAChangedOne) {
  Scratch scratch;
  RunRecord record = *RunRecord::create(scratch.path(), info());
  ASSERT_TRUE(record.add_checkpoint(12, to_value(std::string("state")), "d"));
  EXPECT_EQ(RunRecord::open(scratch.path())->load_checkpoint(12)->text, "state");
  EXPECT_EQ(record.load_checkpoint(13).error().code, ErrorCode::bad_input);
  const fs::path file = scratch.path() / "checkpoints/step-000012.h5";
  write_text(file, flipped(read_text(file), 900));
  const Result<Value> changed = record.load_checkpoint(12);
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code, ErrorCode::corrupt);
  EXPECT_NE(changed.error().detail.find("want digest"), std::string::npos) << changed.error().detail;
}

TEST(RunRecord, RefusesAFolderThatHasARun) {
  Scratch scratch;
  ASSERT_TRUE(RunRecord::create(scratch.path(), info()));
  EXPECT_EQ(RunRecord::create(scratch.path(), info()).error().code, ErrorCode::bad_input);
  EXPECT_FALSE(RunRecord::open(scratch.path() / "nowhere"));
}

TEST(RunRecord, SealsAKilledAttemptWhenTheNextBegins) {
  Scratch scratch;
  record_killed_run(scratch.path());
  RunRecord record = *RunRecord::open(scratch.path());
  ASSERT_TRUE(fs::exists(scratch.path() / journal_path(1, 0)));
  write_text(scratch.path() / "checkpoints/step-000009.h5", "half-made");
  EXPECT_EQ(*record.begin_attempt(2, 1), 2U);
  EXPECT_FALSE(fs::exists(scratch.path() / journal_path(1, 0)));
  EXPECT_FALSE(fs::exists(scratch.path() / "checkpoints/step-000009.h5"));
  const AttemptEntry& killed = record.manifest().attempts[0];
  EXPECT_TRUE(killed.sealed);
  EXPECT_FALSE(killed.exits[0].said);
  EXPECT_EQ(record.begin_attempt(77, 1).error().code, ErrorCode::bad_input);
}

TEST(RunRecord, RecoversAKilledRun) {
  Scratch scratch;
  record_killed_run(scratch.path());
  const fs::path journal = scratch.path() / journal_path(1, 1);
  const std::string whole = read_text(journal);
  write_text(journal, whole.substr(0, whole.size() - 3));
  EXPECT_EQ(*recover(scratch.path()), 2U);
  EXPECT_EQ(*recover(scratch.path()), 0U);
  const Manifest manifest = *read_manifest(scratch.path());
  EXPECT_GT(manifest.attempts[0].exits[1].cut_bytes, 0U);
  EXPECT_FALSE(manifest.finished);
  EXPECT_TRUE(verify(scratch.path()));
}

TEST(RunRecord, VerifiesEveryFileAndNamesUnknownOnes) {
  Scratch scratch;
  record_finished_run(scratch.path());
  write_text(scratch.path() / "metrics.jsonl", "{}");
  write_text(scratch.path() / "notes.txt", "mine");
  const Result<VerifyReport> report = verify(scratch.path());
  ASSERT_TRUE(report) << report.error().detail;
  EXPECT_EQ(report->files, 2U + 3U + 1U);  // events, checkpoints, the job file
  EXPECT_EQ(report->unknown, (std::vector<std::string>{"notes.txt"}));
  fs::remove(scratch.path() / checkpoint_path(0));
  write_text(scratch.path() / "job.toml", "steps = 4");
  const Result<VerifyReport> broken = verify(scratch.path());
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().detail.find("step-000000.h5: want"), std::string::npos) << broken.error().detail;
  EXPECT_NE(broken.error().detail.find("and 1 more"), std::string::npos) << broken.error().detail;
}

TEST(RunRecord, TakesEveryOtherFileOfTheFolder) {
  Scratch scratch;
  RunRecord record = *RunRecord::create(scratch.path(), info());
  fs::create_directories(scratch.path() / "inputs/model");
  write_text(scratch.path() / "inputs/model/config.json", "{}");
  write_text(scratch.path() / "metrics.jsonl", "{}");
  EXPECT_EQ(*record.add_other_files(), 1U);
  EXPECT_EQ(*record.add_other_files(), 0U);
  write_text(scratch.path() / "inputs/model/config.json", "[]");
  EXPECT_FALSE(verify(scratch.path()));
}

TEST(RunRecord, BeginsAgainWhenItWasKilledBeforeTheFirstCheckpoint) {
  Scratch scratch;
  ASSERT_TRUE(RunRecord::create(scratch.path(), info())->begin_attempt(0, 1));
  EXPECT_EQ(*RunRecord::open(scratch.path())->begin_attempt(0, 1), 2U);
  EXPECT_EQ(read_history(scratch.path())->line.size(), 1U);
}

TEST(RunRecord, VerifiesACopyElsewhere) {
  Scratch scratch, elsewhere;
  record_finished_run(scratch.path());
  fs::copy(scratch.path(), elsewhere.path() / "copy", fs::copy_options::recursive);
  EXPECT_TRUE(verify(elsewhere.path() / "copy"));
}

// The first bytes and every 97th after them: all would take minutes, and ValueFile's own test has them.
TEST(RunRecord, FindsAFlippedBitAnywhereInASealedRun) {
  Scratch scratch;
  record_finished_run(scratch.path());
  for (const char* name : {"run.h5", "record/0001-0000.h5", "record/0001-0001.h5", "checkpoints/step-000002.h5", "job.toml"}) {
    const fs::path file = scratch.path() / name;
    const std::string good = read_text(file);
    for (std::size_t i = 0; i < good.size(); i += i < 64 ? 1 : 97) {
      write_text(file, flipped(good, i));
      ASSERT_FALSE(verify(scratch.path())) << name << " byte " << i;
    }
    write_text(file, good);
  }
}

TEST(RunRecord, FindsEveryFlippedByteOfAKilledRunsJournals) {
  Scratch scratch;
  record_killed_run(scratch.path());
  const fs::path file = scratch.path() / journal_path(1, 0);
  const std::string good = read_text(file);
  for (std::size_t i = 0; i < good.size(); ++i) {
    write_text(file, flipped(good, i));
    ASSERT_FALSE(verify(scratch.path())) << "byte " << i;
  }
}

TEST(RunRecord, ReportsAFullDiskAndKeepsWhatWasThere) {
  Scratch scratch;
  RunRecord record = *RunRecord::create(scratch.path(), info());
  ASSERT_TRUE(record.add_checkpoint(0, to_value(1), "d"));
  const std::vector<double> large(10'000);
  const Result<void> added = with_files_of_at_most(50'000, [&] { return record.add_checkpoint(1, to_value(large), "d"); });
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, ErrorCode::io);
  EXPECT_EQ(record.checkpoints().size(), 1U);
  EXPECT_TRUE(verify(scratch.path())->unknown.empty());
}

TEST(RunRecord, OpensInH5pyWithTheEventsOfEveryRank) {
  if (!has_h5py()) GTEST_SKIP() << "/usr/bin/python3 has no h5py (package python3-h5py)";
  Scratch scratch;
  record_finished_run(scratch.path());
  EXPECT_EQ(python(scratch.path(), R"(
import h5py
f = h5py.File('run.h5', 'r')
assert f['run_id'][()] == b'run-7' and f['finished'][()] and f['attempts/0/ranks'][()] == 2
events = f['events/0001-0001']
assert events['deliveries/number'][:].tolist() == [0, 1, 2]
assert events['actors/name'][events['deliveries/actor'][0]] == b'worker'
)"),
            0);
}

}  // namespace
}  // namespace troupe::record
