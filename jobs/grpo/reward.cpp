#include "jobs/grpo/reward.hpp"

#include "jobs/grpo/environment.hpp"
#include "jobs/tasks/task.hpp"

namespace troupe::jobs::grpo {

Scored Reward::score(const Score& message) {
  Scored scored;
  for (const Attempt& attempt : message.attempts) scored.rewards.push_back(reward_of(environment().config.task, {attempt.prompt, attempt.answer}, attempt.response));
  return scored;
}

}  // namespace troupe::jobs::grpo
