#include "jobs/exit_code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "jobs/launch/world.hpp"

namespace troupe::jobs {

int exit_code(const Error& error) {
  switch (error.code) {
    case ErrorCode::bad_input:
    case ErrorCode::corrupt:
    case ErrorCode::io:
    case ErrorCode::unsupported:
    case ErrorCode::resource_short:
    case ErrorCode::locked: return 2;
    default: return 1;
  }
}

int print_error(const Error& error) {
  std::string line = error.detail;
  std::replace(line.begin(), line.end(), '\n', ' ');
  if (is_rank_zero()) fmt::print(stderr, "troupe: {}\n", line);
  return exit_code(error);
}

}  // namespace troupe::jobs
