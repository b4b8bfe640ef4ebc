#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>

#include "actors/record/journal.hpp"
#include "actors/record/messages.hpp"
#include "actors/record/recorder.hpp"
#include "actors/record/scratch.hpp"

namespace troupe::record {
namespace {

/// What a child tells its parent and SIGKILL cannot take back.
struct Progress {
  std::atomic<std::uint64_t> appended{0}, flushed{0};
};

class SharedProgress {
 public:
  SharedProgress() : memory_(::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)), progress_(new (memory_) Progress) {}
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

}  // namespace
}  // namespace troupe::record
