#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/base/error.hpp"

namespace troupe::jobs {

struct LaunchRequest {
  std::uint32_t ranks = 1;
  std::vector<std::string> arguments;  ///< of troupe, for every rank
};

/// Runs this program on so many ranks of this host (or allocation) by mpirun, in a process group of its own, and waits. Draws the
/// progress that rank 0 reports; passes SIGINT, SIGTERM and SIGUSR1 on to every rank (a second SIGINT kills them). When it returns, none
/// of the processes is left; when it is killed, they are killed too. Needs no settings, works as root and with fewer cores than ranks.
/// Gives the job's exit code, 1 when a rank died. Errors: bad_input within a world of ranks; io when mpirun cannot be started.
Result<int> launch(const LaunchRequest& request);

}  // namespace troupe::jobs
