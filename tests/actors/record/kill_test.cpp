#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "actors/record/history.hpp"
#include "actors/record/inspect.hpp"
#include "actors/record/journal.hpp"
#include "actors/record/messages.hpp"
#include "actors/record/recorder.hpp"
#include "actors/record/runs.hpp"
#include "actors/record/scratch.hpp"

namespace troupe::record {
namespace {

/// What a child tells its parent and SIGKILL cannot take back.
struct Progress {
  std::atomic<std::uint64_t> appended{0}, flushed{0};
};

class SharedProgress {
 public:
  SharedProgress()
      : memory_(::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
        progress_(new (memory_) Progress) {}
  ~SharedProgress() { ::munmap(memory_, sizeof(Progress)); }
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;
  Progress* operator->() { return progress_; }

 private:
  void* memory_;
  Progress* progress_;
};

[[noreturn]] void record_for_ever(const std::filesystem::path& path, Progress& progress) {
  auto journal = Journal::create(path, {.format = 0, .attempt = 1, .rank = 0, .run_id = "killed"});
  Recorder recorder(**journal);
  Scene scene(recorder);
  for (std::uint64_t i = 0;; ++i) {
    (void)scene.deliver("a", i % 100 == 0 ? "" : "b", Ping{.round = i, .note = std::string(i % 50, 'x')});
    progress.appended = i + 1;
    if (i % 1000 != 999) continue;
    if ((*journal)->flush()) progress.flushed = i + 1;
  }
}

TEST(KilledWriter, LeavesAJournalThatReadsFiftyTimes) {
  std::minstd_rand random(20);
  for (int kill = 0; kill < 50; ++kill) {
    Scratch scratch;
    SharedProgress progress;
    const pid_t child = ::fork();
    if (child == 0) record_for_ever(scratch.path() / "j", *progress.operator->());
    while (progress->appended == 0) std::this_thread::yield();
    ::usleep(static_cast<useconds_t>(random() % 30'000));  // when the kill comes is what the test varies
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const Result<JournalTables> read = read_journal(scratch.path() / "j");
    ASSERT_TRUE(read) << "kill " << kill << ": " << read.error().detail;
    EXPECT_GE(read->deliveries.actor.size(), progress->flushed) << "kill " << kill;
    for (std::size_t i = 0; i < read->deliveries.number.size(); ++i) ASSERT_EQ(read->deliveries.number[i], i);
  }
}

TEST(KilledWriter, LosesNothingThatWaitedLongerThanTheFlushInterval) {
  Scratch scratch;
  SharedProgress progress;
  const pid_t child = ::fork();
  if (child == 0) {
    auto journal = Journal::create(scratch.path() / "j", {.format = 0, .attempt = 1, .rank = 0, .run_id = "idle"});
    Recorder recorder(**journal);
    Scene scene(recorder);
    (void)scene.deliver("a", "b", Ping{.round = 1, .note = ""});
    progress->appended = 1;
    ::pause();
  }
  while (progress->appended == 0) std::this_thread::yield();
  ::usleep(200'000);  // many intervals, for a loaded machine; nobody calls flush
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(read_journal(scratch.path() / "j")->deliveries.actor.size(), 1U);
}

/// A job without end in one folder: resumed from the newest checkpoint, a checkpoint every step, the newest two kept.
[[noreturn]] void run_for_ever(const std::filesystem::path& folder, Progress& progress) {
  const bool resumed = std::filesystem::exists(folder / "run.h5");
  Result<RunRecord> record = resumed ? RunRecord::open(folder) : RunRecord::create(folder, info());
  if (record && record->checkpoints().empty()) (void)record->add_checkpoint(0, to_value(0), "weights");
  const std::uint64_t start = record ? record->checkpoints().back().step : 0;
  const Result<std::uint32_t> attempt = record ? record->begin_attempt(start, 1) : Result<std::uint32_t>(record.error());
  if (!attempt) ::_exit(1);
  auto journal = create_journal(folder, "run-7", *attempt, 0);
  Recorder recorder(**journal);
  ToyRun run(recorder, recorder);
  if (!run.start()) ::_exit(1);
  for (std::uint64_t step = start + 1;; ++step) {
    if (!run.step(step)) ::_exit(1);
    recorder.mark_step(step);
    if (!(*journal)->sync() || !record->add_checkpoint(step, to_value(step), "weights") || !record->keep(2)) ::_exit(1);
    progress.flushed = step;
  }
}

TEST(KilledRun, IsReadableAndGoesOnTwentyTimes) {
  std::minstd_rand random(4);
  Scratch scratch;
  SharedProgress progress;
  for (int kill = 0; kill < 20; ++kill) {
    const pid_t child = ::fork();
    if (child == 0) run_for_ever(scratch.path(), *progress.operator->());
    ::usleep(static_cast<useconds_t>(random() % 250'000));  // when the kill comes is what the test varies
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "kill " << kill << ": the run ended by itself";
    if (!std::filesystem::exists(scratch.path() / "run.h5")) continue;
    const Result<VerifyReport> verified = verify(scratch.path());
    ASSERT_TRUE(verified) << "kill " << kill << ": " << verified.error().detail;
    const Result<RunSummary> summary = inspect(scratch.path());
    ASSERT_TRUE(summary) << "kill " << kill << ": " << summary.error().detail;
    if (summary->attempts.empty()) continue;
    const Result<History> history = read_history(scratch.path());
    ASSERT_TRUE(history) << "kill " << kill << ": " << history.error().detail;
    // The line has no gap, and each but its last segment is whole and ends with the checkpoint that the next begins from.
    for (std::size_t i = 0; i + 1 < history->line.size(); ++i) {
      EXPECT_EQ(history->line[i].end_step, history->line[i + 1].start_step);
      EXPECT_TRUE(history->line[i].whole) << "kill " << kill << ", segment " << i;
    }
    EXPECT_GE(summary->checkpoints.back().step, progress->flushed);
  }
  EXPECT_GT(progress->flushed, 0U) << "no step was ever done: the test shows nothing";
}

}  // namespace
}  // namespace troupe::record
