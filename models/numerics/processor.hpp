#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "actors/base/error.hpp"

namespace troupe::models::numerics {

/// Instruction sets that the kernels are compiled for; both give the same bits.
enum class SimdTarget : std::uint8_t { avx2 = 0, avx512 = 1 };
std::string_view to_string(SimdTarget target);  ///< "avx2", "avx512"

/// What this processor has, ascending. Empty: below x86-64-v3 (AVX2 and FMA), where nothing of the contract can run.
std::vector<SimdTarget> supported_targets();

/// Says whether this processor can run the kernels at all. Call it before the first kernel. Errors: unsupported, in one line.
Result<void> check_processor();

/// Chooses the instruction set of all kernels of the process; the default is the widest. Call it while no kernel runs.
/// name: "auto", "avx2" or "avx512". Errors: bad_input for another name, unsupported where the processor lacks it.
Result<void> select_target(std::string_view name);

SimdTarget selected_target();

/// Whether this thread rounds to nearest, keeps denormals and masks exceptions, as the contract wants. Every compute thread asks once on
/// entry, and start-up asks after each library that might have changed it. Errors: unsupported, with the register's value.
Result<void> check_float_environment();

}  // namespace troupe::models::numerics
