// Started without TROUPE_LAUNCH, it launches itself: launch_probe RANKS MODE. Its ranks print their process ids and do what MODE says.

#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "jobs/exit_code.hpp"
#include "jobs/launch/launch_folder.hpp"
#include "jobs/launch/launcher.hpp"
#include "jobs/launch/stop_signals.hpp"
#include "jobs/launch/world.hpp"
#include "jobs/report/progress.hpp"

namespace {

using namespace troupe::jobs;

int wait_for_stop(StopSignals& stop) {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_stopped = false;
  stop.on_stop([&](int) {
    const std::lock_guard lock(mutex);
    is_stopped = true;
    changed.notify_all();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return is_stopped; });
  return *stop.exit_code();
}

int run_rank(const std::string& mode) {
  StopSignals stop;
  report_to_launcher();
  auto world = join_world();
  if (!world) return print_error(world.error());
  const std::uint32_t rank = index((*world)->rank());
  std::printf("rank %u of %u is %d\n", rank, (*world)->size(), getpid());
  std::fflush(stdout);
  Progress progress = Progress::for_this_rank();
  if (mode == "die" && rank == 1) raise(SIGKILL);
  if (mode == "die" || mode == "wait") return end_rank(**world, wait_for_stop(stop));
  for (std::uint64_t step = 1; step <= 2; ++step) progress.step({.step = step, .steps = 2, .tokens = 1, .reward = 0.5, .accuracy = {}, .loss = {}});
  return end_rank(**world, mode == "seven" && rank == 0 ? 7 : 0);
}

}  // namespace

int main(int, char** values) {
  if (std::getenv(LaunchFolder::kVariable) != nullptr) return run_rank(values[2]);
  auto code = launch({.ranks = static_cast<std::uint32_t>(std::atoi(values[1])), .arguments = {values[1], values[2]}});
  return code ? *code : print_error(code.error());
}
