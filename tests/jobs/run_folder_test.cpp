#include "jobs/run_folder/run_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jobs/folders.hpp"
#include "jobs/run_folder/inputs.hpp"

namespace troupe::jobs {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

/// An sft job whose data lies in the folder, and a place for runs.
class RunFolders : public ::testing::Test {
 protected:
  RunFolders() { folder_.write("data.jsonl", "{\"text\": \"a\"}\n"); }

  JobConfig config(const std::vector<std::string>& overrides = {}) const {
    auto settings = parse_job_text("job = \"sft\"\ndata.path = \"data.jsonl\"\n", "job.toml", folder_.path());
    EXPECT_TRUE(add_overrides(overrides, *settings));
    return *make_job(*settings);
  }
  fs::path run() const { return folder_.path() / "run"; }
  void begin() const {
    fs::create_directory(run() / "checkpoints");
    std::ofstream(run() / "run.h5") << "a record";
  }

  TemporaryFolder folder_;
};

TEST_F(RunFolders, MakesAFreshOneWithJobFileAndInputs) {
  auto opened = RunFolder::open(run(), config({"seed=7"}));
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->state(), RunState::fresh);
  EXPECT_EQ(read(run() / "inputs" / "data.jsonl"), "{\"text\": \"a\"}\n");
  EXPECT_THAT(read(run() / "job.toml"), HasSubstr("data.path = \"inputs/data.jsonl\""));
  EXPECT_FALSE(first_difference(*read_job(run() / "job.toml"), config({"seed=7"})));
  EXPECT_EQ(std::get<SftConfig>(*opened_config(run(), config())).data.path, fs::absolute(run()) / "inputs" / "data.jsonl");
}

TEST_F(RunFolders, ResumesWhenTheConfigurationAgrees) {
  { ASSERT_TRUE(RunFolder::open(run(), config())); }
  begin();
  auto opened = RunFolder::open(run(), config({"threads=3", "checkpoint.every=1"}));
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->state(), RunState::resumed);
}

TEST_F(RunFolders, RefusesAnotherConfigurationByItsFirstKey) {
  { ASSERT_TRUE(RunFolder::open(run(), config())); }
  begin();
  auto opened = RunFolder::open(run(), config({"steps=7"}));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::bad_input);
  EXPECT_THAT(opened.error().detail, HasSubstr("steps: the run in "));
}

TEST_F(RunFolders, RefusesInputsThatHoldOtherBytes) {
  { ASSERT_TRUE(RunFolder::open(run(), config())); }
  begin();
  folder_.write("data.jsonl", "{\"text\": \"b\"}\n");
  auto opened = RunFolder::open(run(), config());
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().detail, HasSubstr("data.path: the run was started from other contents"));
}

TEST_F(RunFolders, LeavesAFinishedRunAlone) {
  { ASSERT_TRUE(RunFolder::open(run(), config())); }
  begin();
  ASSERT_TRUE(write_summary(run(), {.job = "sft", .state = "done"}));
  const auto before = fs::last_write_time(run());
  auto opened = RunFolder::open(run(), config());
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->state(), RunState::finished);
  EXPECT_EQ(fs::last_write_time(run()), before);
}

TEST_F(RunFolders, RefusesAFileAndAFolderOfSomeone) {
  folder_.write("run", "x");
  EXPECT_THAT(RunFolder::open(run(), config()).error().detail, HasSubstr("want a folder for the run, got a file"));
  EXPECT_THAT(RunFolder::open(folder_.path(), config()).error().detail, HasSubstr("got one with other files in it"));
  EXPECT_FALSE(fs::exists(folder_.path() / "run.lock"));
}

TEST_F(RunFolders, TakesOverWhatAKilledStartLeft) {
  fs::create_directories(run() / "inputs");
  std::ofstream(run() / "run.lock") << LockHolder{"elsewhere", 12, 34}.text();
  std::ofstream(run() / "metrics.jsonl") << "{\"step\"";
  auto opened = RunFolder::open(run(), config());
  ASSERT_TRUE(opened);
  EXPECT_EQ(opened->state(), RunState::fresh);
  EXPECT_THAT(opened->notice(), HasSubstr("took over from process 12 on host elsewhere"));
  EXPECT_FALSE(fs::exists(run() / "metrics.jsonl"));
}

TEST_F(RunFolders, TakesBackWhatARefusedJobMade) {
  auto opened = RunFolder::open(run(), config());
  ASSERT_TRUE(opened);
  opened->abandon();
  EXPECT_FALSE(fs::exists(run()));
}

TEST_F(RunFolders, RefusesASecondWriterNamingTheFirst) {
  auto first = RunFolder::open(run(), config());
  ASSERT_TRUE(first);
  auto second = RunFolder::open(run(), config());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::locked);
  EXPECT_THAT(second.error().detail, HasSubstr("process " + std::to_string(getpid()) + " on host " + LockHolder::of_this_process().host));
}

TEST_F(RunFolders, LosesTheLockWithItsProcess) {
  const pid_t child = fork();
  if (child == 0) {
    auto opened = RunFolder::open(run(), config());
    _exit(opened ? 0 : 1);  // without its destructor, as a killed process
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  auto opened = RunFolder::open(run(), config());
  ASSERT_TRUE(opened);
  EXPECT_THAT(opened->notice(), HasSubstr("process " + std::to_string(child)));
}

TEST(Summary, ReadsBackWhatItWrote) {
  const TemporaryFolder folder;
  const Summary summary{.job = "grpo", .state = "done", .steps = 4, .seed = 1, .ranks = 3, .wall_s = 1.5, .digest = "00ff", .messages = 12, .metrics = {{"val/accuracy_after", 0.1}}};
  ASSERT_TRUE(write_summary(folder.path(), summary));
  auto again = read_summary(folder.path());
  ASSERT_TRUE(again && *again);
  EXPECT_EQ(summary_json(**again), summary_json(summary));
  EXPECT_FALSE(*read_summary(folder.path() / "nothing"));
}

TEST(LockHolder, ReadsBackWhatItWrote) {
  const auto holder = LockHolder::of_this_process();
  EXPECT_GT(holder.started_ticks, 0U);
  EXPECT_EQ(LockHolder::parse(holder.text())->text(), holder.text());
  EXPECT_FALSE(LockHolder::parse("someone's notes"));
}

}  // namespace
}  // namespace troupe::jobs
