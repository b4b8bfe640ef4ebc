#include "jobs/compute.hpp"

#include <sched.h>

#include <algorithm>

#include "models/numerics/processor.hpp"

namespace troupe::jobs {

std::uint32_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::uint32_t>(std::max(1, CPU_COUNT(&set)));
}

Result<std::unique_ptr<models::ThreadPool>> start_compute(std::uint32_t threads, std::string_view simd, std::uint32_t sharers) {
  if (auto done = models::numerics::check_processor(); !done) return done.error();
  if (auto done = models::numerics::select_target(simd); !done) return done.error();
  if (threads == 0) threads = std::max(1U, usable_cores() / std::max(1U, sharers));
  return std::make_unique<models::ThreadPool>(threads);
}

}  // namespace troupe::jobs
