// The whole line through the command that people type: layouts, kills, stops, replays, divergence.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>

#include <boost/json.hpp>

#include "jobs/child.hpp"
#include "jobs/folders.hpp"

namespace troupe::jobs {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using ::testing::HasSubstr;

const std::string kTroupe = TROUPE_BINARY_DIR "/bin/troupe";
const std::string kJob = TROUPE_SOURCE_DIR "/jobs/examples/arithmetic/grpo.toml";

std::vector<std::string> run_words(const fs::path& run, std::vector<std::string> settings) {
  std::vector<std::string> words{kTroupe, "run", kJob, "val.size=20", "--run", run.string()};
  words.insert(words.end(), settings.begin(), settings.end());
  return words;
}
std::string digest_of(const fs::path& run) { return std::string(json::parse(read(run / "summary.json")).as_object().at("digest").as_string()); }
std::string digest_after(const fs::path& run, std::vector<std::string> settings) {
  const Ended ended = Child(run_words(run, std::move(settings))).end();
  EXPECT_EQ(ended.code, 0) << ended.err;
  return ended.code == 0 ? digest_of(run) : std::string();
}
Ended replay(const fs::path& run, const std::string& ranks) { return Child({kTroupe, "replay", run.string(), "--ranks", ranks}).end(); }

/// Lines of metrics.jsonl, as the run writes them.
std::ptrdiff_t steps_done(const fs::path& run) {
  const std::string text = read(run / "metrics.jsonl");
  return std::count(text.begin(), text.end(), '\n');
}
void wait_for_steps(const fs::path& run, std::ptrdiff_t wanted) {
  while (steps_done(run) < wanted) std::this_thread::yield();
}

TEST(GrpoRun, GivesOneAnswerInEveryLayout) {
  const TemporaryFolder folder;
  const std::string wanted = digest_after(folder.path() / "plain", {"steps=2"});
  const std::vector<std::vector<std::string>> layouts{
      {"--ranks", "2", "learner.data_parallel=2"},
      {"--ranks", "3", "learner.tensor_parallel=2", "rollout.tensor_parallel=2", "learner.micro_batch=3"},
      {"--ranks", "4", "learner.data_parallel=2", "learner.tensor_parallel=2", "rollout.actors=3", "rollout.batch_max=5", "threads=3", "simd=avx2"},
  };
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    std::vector<std::string> settings = layouts[i];
    settings.emplace_back("steps=2");
    EXPECT_EQ(digest_after(folder.path() / std::to_string(i), settings), wanted) << i;
  }
}

TEST(GrpoRun, GivesOneAnswerWithEpochsAndAReference) {
  const TemporaryFolder folder;
  const std::vector<std::string> settings{"steps=2", "actor.use_kl_loss=true", "actor.kl_loss_coef=0.1", "actor.ppo_epochs=2", "actor.entropy_coeff=0.01"};
  std::vector<std::string> spread = settings;
  spread.insert(spread.end(), {"--ranks", "3", "learner.data_parallel=2", "learner.tensor_parallel=2", "learner.micro_batch=5"});
  EXPECT_EQ(digest_after(folder.path() / "spread", spread), digest_after(folder.path() / "plain", settings));
}

TEST(GrpoRun, GoesOnAfterSigkillAndReplaysAsOneRun) {
  const TemporaryFolder folder;
  const std::string wanted = digest_after(folder.path() / "whole", {"steps=6"});
  const fs::path run = folder.path() / "killed";
  const std::vector<std::string> settings{"steps=6", "checkpoint.every=2", "--ranks", "2"};
  {
    Child child(run_words(run, settings));
    wait_for_steps(run, 3);
    kill(child.process(), SIGKILL);  // its ranks die with it
    EXPECT_EQ(child.end().code, -SIGKILL);
  }
  const Ended cut = replay(run, "2");  // as far as the record goes
  EXPECT_EQ(cut.code, 0) << cut.err;
  EXPECT_EQ(digest_after(run, {"steps=6", "checkpoint.every=2", "--ranks", "3"}), wanted);
  EXPECT_EQ(steps_done(run), 6);
  for (const char* ranks : {"1", "2", "3"}) {
    const Ended ended = replay(run, ranks);
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("in 2 segments"));
  }
}

/// The process of a rank that `troupe run … --run RUN --ranks N` has started.
pid_t rank_process(const fs::path& run, int rank) {
  const std::string variable = "OMPI_COMM_WORLD_RANK=" + std::to_string(rank) + std::string(1, '\0');
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    if (read(entry.path() / "cmdline").find(run.string()) == std::string::npos || read(entry.path() / "environ").find(variable) == std::string::npos) continue;
    return std::stoi(name);
  }
  return 0;
}

// Some member of a gang waits for one whose delivery died with its rank; it must not wait for the collective's deadline of 600 s.
TEST(GrpoRun, ReplaysWhatALostRankLeaves) {
  for (const int rank : {1, 2}) {
    const TemporaryFolder folder;
    const fs::path run = folder.path() / "run";
    Child child(run_words(run, {"steps=500", "--ranks", "3", "learner.data_parallel=2", "rollout.tensor_parallel=2"}));
    wait_for_steps(run, 3);
    const pid_t process = rank_process(run, rank);
    ASSERT_GT(process, 0);
    kill(process, SIGKILL);
    EXPECT_EQ(child.end().code, 1);
    const auto began = std::chrono::steady_clock::now();
    for (const char* ranks : {"1", "2"}) {
      const Ended ended = replay(run, ranks);
      EXPECT_EQ(ended.code, 0) << ended.err;
      EXPECT_THAT(ended.out, HasSubstr("equal: "));
    }
    EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(60));
  }
}

/// Returns once the process takes its signals itself.
void wait_until_it_takes(pid_t process, int signal) {
  for (;;) {
    const std::string status = read("/proc/" + std::to_string(process) + "/status");
    const auto at = status.find("SigBlk:");
    if (at == std::string::npos) return;  // it has ended
    if ((std::stoull(status.substr(at + 7), nullptr, 16) >> (signal - 1) & 1) != 0) return;
    std::this_thread::yield();
  }
}

TEST(GrpoRun, EndsAReplayAtASignal) {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  digest_after(run, {"steps=30"});
  for (const std::string ranks : {"1", "2"}) {
    for (const int signal : {SIGTERM, SIGINT}) {
      Child child({kTroupe, "replay", run.string(), "--ranks", ranks});
      wait_until_it_takes(child.process(), signal);
      kill(child.process(), signal);
      const Ended ended = child.end();
      EXPECT_EQ(ended.code, 128 + signal) << ended.err;
      EXPECT_EQ(ended.out, "");
      EXPECT_EQ(ended.err, std::string("troupe: replay: stopped by ") + (signal == SIGINT ? "SIGINT" : "SIGTERM") + " before its end\n") << ranks;
    }
  }
}

TEST(GrpoRun, RefusesOtherWeightsBeforeTheFirstMessage) {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  digest_after(run, {"steps=1"});
  const fs::path weights = run / "inputs" / "model" / "model.safetensors";
  std::string bytes = read(weights);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  std::ofstream(weights, std::ios::binary) << bytes;
  const Ended ended = replay(run, "1");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("model.safetensors: want digest"));
}

// From before the signals are taken (the process dies of it) through loading and the first step to the end.
TEST(GrpoRun, EndsAtASignalWheneverItComes) {
  for (int delay_ms = 0; delay_ms <= 240; delay_ms += 12) {
    const TemporaryFolder folder;
    Child child(run_words(folder.path() / "run", {"steps=500"}));
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    kill(child.process(), SIGTERM);
    const int code = child.end().code;
    EXPECT_TRUE(code == 143 || code == -SIGTERM) << "after " << delay_ms << " ms: " << code;
  }
}

TEST(GrpoRun, TurnsASecondWriterAwayByName) {
  const TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  Child first(run_words(run, {"steps=500"}));
  wait_for_steps(run, 1);
  const Ended second = Child(run_words(run, {"steps=500"})).end();
  EXPECT_EQ(second.code, 2);
  EXPECT_THAT(second.err, HasSubstr("process " + std::to_string(first.process())));
  kill(first.process(), SIGTERM);
  EXPECT_EQ(first.end().code, 143);
}

}  // namespace
}  // namespace troupe::jobs
