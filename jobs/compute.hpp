#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "actors/base/error.hpp"
#include "models/kernels/thread_pool.hpp"

namespace troupe::jobs {

/// Cores that this process may run on.
std::uint32_t usable_cores();

/// Checks the processor, chooses the kernels' instruction set ("auto", "avx2", "avx512") and starts the threads; 0 threads: the usable
/// cores divided by `sharers`, the ranks of this host. Errors: bad_input, unsupported.
Result<std::unique_ptr<models::ThreadPool>> start_compute(std::uint32_t threads, std::string_view simd, std::uint32_t sharers = 1);

}  // namespace troupe::jobs
