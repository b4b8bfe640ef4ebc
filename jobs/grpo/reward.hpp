#pragma once

#include "actors/actor.hpp"
#include "jobs/grpo/messages.hpp"

namespace troupe::jobs::grpo {

/// Scores responses by the task's verifiable reward.
class Reward {
 public:
  Scored score(const Score& message);
  static void handlers(Handlers<Reward>& on) { on.message<&Reward::score>(); }
};

}  // namespace troupe::jobs::grpo
