#include "jobs/launch/world.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

#include "jobs/exit_code.hpp"
#include "jobs/launch/launch_folder.hpp"

namespace troupe::jobs {

bool is_rank_zero() { return rank_from_environment() == 0; }

void report_to_launcher() {
  const auto folder = LaunchFolder::of_this_process();
  if (!folder) return;
  // mpirun dies with the launcher and this rank with mpirun, whatever kills them.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == 1) _exit(1);  // it was dead already
  folder->write_process(rank_from_environment(), getpid());
}

Result<std::unique_ptr<transport::World>> join_world() { return transport::World::join(); }

void note_exit_code(int code) {
  if (const auto folder = LaunchFolder::of_this_process()) folder->write_exit_code(rank_from_environment(), code);
}

int end_rank(transport::World& world, Result<int> code) {
  const int ended = code ? *code : print_error(code.error());
  note_exit_code(ended);
  const bool left = world.leave();
  std::fflush(nullptr);
  if (!left) _exit(ended);
  // The launcher has the code; mpirun would print a page about any other than 0.
  return LaunchFolder::of_this_process() ? 0 : ended;
}

}  // namespace troupe::jobs
