// Run by lost_rank_test: the last rank is killed by SIGKILL; each survivor prints one line once it has seen that, still reaches the other
// survivors, and leaves without MPI_Finalize.

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>

#include "transport/link_world.hpp"
#include "transport/world.hpp"

using namespace troupe;
using namespace troupe::testing;

int main() {
  auto joined = transport::World::join();
  if (!joined) {
    fmt::print(stderr, "{}\n", joined.error().detail);
    return 2;
  }
  transport::World& world = **joined;
  KeepingSink sink;
  world.link()->start(sink);
  const Rank victim{world.size() - 1};
  const auto exchange = [&](std::uint32_t ranks, std::size_t count) {
    for (std::uint32_t i = 0; i < ranks; ++i) {
      if (Rank{i} != world.rank() && (!world.link()->send(Rank{i}, numbered(count)) || !sink.wait_for(Rank{i}, count))) return false;
    }
    return true;
  };
  const auto check = [&](bool holds, const char* what) {
    if (holds) return;
    fmt::print("rank {} falls short: {}\n", index(world.rank()), what);
    std::fflush(stdout);
    std::_Exit(1);
  };
  check(exchange(world.size(), 1), "all ranks exchange a message");
  // It may fail: the victim may be through and dead while others are still in it.
  (void)world.all_gather({});
  if (world.rank() == victim) std::raise(SIGKILL);

  check(sink.wait_lost(victim), "the lost rank is seen");
  check(sink.lost_count() == 1 && world.has_lost_rank(), "it alone is lost");
  check(exchange(world.size() - 1, 2), "the survivors exchange a message");
  check(!world.link()->send(victim, numbered(3)), "the lost rank takes no message");
  const bool orderly = world.leave();
  fmt::print("survivor {}: {}; orderly {}\n", index(world.rank()), sink.lost(victim)[0].detail, orderly);
  std::fflush(stdout);
  std::quick_exit(0);
}
