#pragma once

#include <memory>

#include "actors/actor.hpp"
#include "jobs/grpo/messages.hpp"
#include "models/engine.hpp"
#include "scheduler/gang.hpp"

namespace troupe::jobs::grpo {

/// A member of a rollout: one shard of the model, generating. All members make the same calls.
class Rollout {
 public:
  Rollout() = default;
  explicit Rollout(scheduler::GangPlace place) : place_(std::move(place)) {}

  Result<Generated> generate(Context& context, const Generate& message);
  Task<Result<Fetched>> fetch(Context& context, const FetchWeights& message);
  static void handlers(Handlers<Rollout>& on) { on.message<&Rollout::generate>().message<&Rollout::fetch>(); }

 private:
  Result<void> open();
  Result<void> begin();  ///< on the first message, on the actor's own thread: opens the communicator, loads the model

  scheduler::GangPlace place_;
  std::unique_ptr<collectives::Communicator> communicator_;
  std::unique_ptr<models::ThreadPool> pool_;
  std::unique_ptr<models::Model> model_;
  std::unique_ptr<models::Engine> engine_;
  bool is_open_ = false;
};

using RolloutFront = scheduler::GangFront<Generate, FetchWeights>;

}  // namespace troupe::jobs::grpo
