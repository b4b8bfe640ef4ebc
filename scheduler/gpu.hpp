#pragma once

#include <string_view>
#include <vector>

#include "actors/base/error.hpp"
#include "scheduler/inventory.hpp"

namespace troupe::scheduler {

/// The GPUs this process sees, in the driver's order; none when the machine has no CUDA driver. The driver is loaded at run time:
/// a build without CUDA finds GPUs as well, and a build with it runs where there are none.
/// Errors: io when the driver is there and refuses.
Result<std::vector<Gpu>> find_gpus();

/// Makes a GPU the calling thread's current device: its primary context, which the CUDA runtime and NCCL use too.
/// Errors: bad_input when this process does not see the GPU; io when the driver refuses.
Result<void> make_gpu_current(std::string_view uuid);

}  // namespace troupe::scheduler
