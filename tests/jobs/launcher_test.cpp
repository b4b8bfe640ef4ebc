#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "jobs/child.hpp"
#include "jobs/folders.hpp"

namespace troupe::jobs {
namespace {

using ::testing::HasSubstr;

Child probe(int ranks, const char* mode) { return Child({TROUPE_BINARY_DIR "/bin/launch_probe", std::to_string(ranks), mode}); }

std::vector<pid_t> ranks_of(Child& child, int count) {
  std::vector<pid_t> processes;
  for (int i = 0; i < count; ++i) {
    const std::string line = child.line();
    processes.push_back(std::stoi(line.substr(line.rfind(' ') + 1)));
  }
  return processes;
}

bool is_alive(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  const auto bracket = stat.rfind(')');
  return bracket != std::string::npos && stat.substr(bracket + 2, 1) != "Z";
}

/// Whether all end within ten seconds.
bool all_end(const std::vector<pid_t>& processes) {
  for (int i = 0; i < 1000; ++i) {
    if (std::none_of(processes.begin(), processes.end(), is_alive)) return true;
    poll(nullptr, 0, 10);
  }
  return false;
}

TEST(Launcher, StartsRanksAndShowsTheirProgress) {
  for (const int ranks : {2, 4}) {
    auto child = probe(ranks, "work");
    const Ended ended = child.end();
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("rank 0 of " + std::to_string(ranks)));
    EXPECT_THAT(ended.err, HasSubstr("step 2/2  reward 0.500"));
  }
}

TEST(Launcher, GivesTheJobsExitCodeWithoutMpirunsWords) {
  auto child = probe(3, "seven");
  const Ended ended = child.end();
  EXPECT_EQ(ended.code, 7);
  EXPECT_THAT(ended.err, ::testing::Not(HasSubstr("mpirun")));
}

TEST(Launcher, PassesStopsOnToTheRanks) {
  for (const auto& [signal, code] : {std::pair{SIGTERM, 143}, {SIGUSR1, 143}, {SIGINT, 130}}) {
    auto child = probe(3, "wait");
    const auto ranks = ranks_of(child, 3);
    kill(child.process(), signal);
    const Ended ended = child.end();
    EXPECT_EQ(ended.code, code) << signal << ended.err;
    EXPECT_TRUE(all_end(ranks));
  }
}

TEST(Launcher, EndsAllWhenARankDies) {
  auto child = probe(3, "die");
  const auto ranks = ranks_of(child, 3);
  const Ended ended = child.end();
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("troupe: rank 1 ended without a word"));
  EXPECT_TRUE(all_end(ranks));
}

TEST(Launcher, TakesTheRanksWithItWhenItIsKilled) {
  auto child = probe(3, "wait");
  const auto ranks = ranks_of(child, 3);
  kill(child.process(), SIGKILL);
  EXPECT_TRUE(all_end(ranks));
  child.end();
}

Ended troupe(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), TROUPE_BINARY_DIR "/bin/troupe");
  return Child(std::move(arguments)).end();
}

TEST(Launcher, StopsAJobOnRanksAfterACheckpointFromWhichItGoesOn) {
  const TemporaryFolder folder;
  const std::string job = TROUPE_SOURCE_DIR "/jobs/examples/arithmetic/grpo.toml", whole = folder.path() / "whole", broken = folder.path() / "broken";
  ASSERT_EQ(troupe({"run", job, "steps=15", "--run", whole}).code, 0);
  Child child({TROUPE_BINARY_DIR "/bin/troupe", "run", job, "steps=15", "--run", broken, "--ranks", "3"});
  while (read(broken + "/metrics.jsonl").empty()) poll(nullptr, 0, 1);
  EXPECT_THAT(troupe({"run", job, "steps=15", "--run", broken}).err, HasSubstr("writes this run"));
  kill(child.process(), SIGTERM);
  ASSERT_EQ(child.end().code, 143);
  ASSERT_EQ(troupe({"run", job, "steps=15", "--run", broken, "--ranks", "2"}).code, 0);
  EXPECT_EQ(troupe({"digest", broken}).out, troupe({"digest", whole}).out);
}

}  // namespace
}  // namespace troupe::jobs
