#include "jobs/grpo/reward.hpp"

#include "jobs/grpo/environment.hpp"
#include "jobs/tasks/task.hpp"

namespace troupe::jobs::grpo {

std::vector<double> Reward::score(const Score& message) {
  std::vector<double> rewards;
  for (const Attempt& attempt : message.attempts) rewards.push_back(reward_of(environment().config.task, {attempt.prompt, attempt.answer}, attempt.response));
  return rewards;
}

}  // namespace troupe::jobs::grpo
