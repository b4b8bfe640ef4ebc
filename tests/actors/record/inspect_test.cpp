#include "actors/record/inspect.hpp"

#include <gtest/gtest.h>

#include "actors/record/runs.hpp"

namespace troupe::record {
namespace {

TEST(Inspect, CountsWhatAFinishedRunDid) {
  Scratch scratch;
  record_finished_run(scratch.path());
  const Result<RunSummary> summary = inspect(scratch.path());
  ASSERT_TRUE(summary) << summary.error().detail;
  EXPECT_EQ(summary->state, "finished");
  EXPECT_EQ(summary->ranks, 2U);
  EXPECT_EQ(summary->last_step, 3U);
  EXPECT_EQ(summary->message_count, 7U);
  EXPECT_EQ(summary->actors[1].name, "worker");
  EXPECT_EQ(summary->actors[1].rank, 1U);
  EXPECT_EQ(summary->messages[0].type, type_name<Ping>());
  EXPECT_EQ(summary->checkpoints.size(), 3U);
  EXPECT_GT(summary->recorded_bytes_per_message, 10);
}

TEST(Inspect, SeesTheSameInARunThatIsNotSealed) {
  Scratch killed;
  record_killed_run(killed.path());
  const RunSummary before = *inspect(killed.path());
  EXPECT_EQ(before.state, "killed or running");
  ASSERT_TRUE(recover(killed.path()));
  RunSummary after = *inspect(killed.path());
  EXPECT_EQ(after.state, "killed or running");
  after.attempts[0].sealed = false;
  const auto difference = first_difference(to_value(before), to_value(after));
  EXPECT_FALSE(difference) << difference->path << ": " << difference->left << " / " << difference->right;
}

TEST(Inspect, WritesNothing) {
  Scratch scratch;
  record_killed_run(scratch.path());
  std::filesystem::permissions(scratch.path(), std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  const auto before = std::filesystem::last_write_time(scratch.path());
  EXPECT_TRUE(inspect(scratch.path()));
  EXPECT_EQ(std::filesystem::last_write_time(scratch.path()), before);
  std::filesystem::permissions(scratch.path(), std::filesystem::perms::owner_all);
}

TEST(Inspect, SaysTheSameInTextAndJson) {
  Scratch scratch;
  record_finished_run(scratch.path());
  const RunSummary summary = *inspect(scratch.path());
  const std::string text = to_text(summary);
  for (const char* part :
       {"run run-7: finished, step 3, 2 ranks", "rank 1: done", "driver", "checkpoints/step-000002.h5", "bytes a message"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  if (!has_h5py()) GTEST_SKIP() << "no /usr/bin/python3 with h5py";
  write_text(scratch.path() / "out.json", to_json(to_value(summary)));
  EXPECT_EQ(
      python(
          scratch.path(),
          "import json; s = json.load(open('out.json')); assert s['messages'][0]['count'] == 4 and s['attempts'][0]['exits'][1]['said']"),
      0);
}

TEST(Json, EscapesTextsAndNestsArrays) {
  Value record;
  record.kind = Value::Kind::record;
  record.names = {"a\"b", "m", "x", "n"};
  Value matrix = to_value(std::vector<std::int32_t>{1, 2, 3, 4});
  matrix.shape = {2, 2};
  record.children = {to_value(std::string("line\nend\\")), matrix, Value{}, to_value(std::numeric_limits<double>::infinity())};
  EXPECT_EQ(to_json(record), R"({"a\"b": "line\u000aend\\", "m": [[1, 2], [3, 4]], "x": null, "n": null})");
}

}  // namespace
}  // namespace troupe::record
