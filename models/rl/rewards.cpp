#include "models/rl/rewards.hpp"

#include <algorithm>

namespace troupe::models::rl {

double overlong_penalty(std::uint64_t length, std::uint64_t length_max, std::uint64_t buffer, double factor) {
  const double beyond = static_cast<double>(length) - (static_cast<double>(length_max) - static_cast<double>(buffer));
  return beyond <= 0.0 ? 0.0 : -beyond / static_cast<double>(buffer) * factor;
}

bool is_informative(std::span<const double> group_rewards) {
  if (group_rewards.size() < 2) return true;
  return std::ranges::any_of(group_rewards, [&](double reward) { return reward != group_rewards.front(); });
}

}  // namespace troupe::models::rl
