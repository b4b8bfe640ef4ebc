#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/base/error.hpp"

namespace troupe::jobs {

struct RunOptions {
  std::string job;
  std::vector<std::string> overrides;
  std::string run;          ///< empty: runs/NAME-DATE-ID
  std::uint32_t ranks = 0;  ///< 0: not given
  bool json = false;
};

/// `troupe run`: reads and checks the job, opens its folder, starts the ranks or is one, and prints how it ended; the exit code.
Result<int> run_command(const RunOptions& options);

/// The keys of all jobs, for --help.
std::string list_keys();

}  // namespace troupe::jobs
