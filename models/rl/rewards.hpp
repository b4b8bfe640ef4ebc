#pragma once

#include <cstdint>
#include <span>

namespace troupe::models::rl {

/// DAPO's soft punishment of long responses (arXiv:2503.14476): what is added to the reward, 0 up to max − buffer and
/// −(length − (max − buffer)) / buffer · factor beyond. Precondition: buffer > 0.
double overlong_penalty(std::uint64_t length, std::uint64_t length_max, std::uint64_t buffer, double factor);

/// Whether a group teaches anything: DAPO draws again where all rewards of several responses are equal.
bool is_informative(std::span<const double> group_rewards);

}  // namespace troupe::models::rl
