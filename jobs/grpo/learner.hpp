#pragma once

#include <memory>
#include <optional>

#include "actors/actor.hpp"
#include "jobs/config/grpo_config.hpp"
#include "jobs/grpo/messages.hpp"
#include "models/engine.hpp"
#include "models/training/trainer.hpp"
#include "scheduler/gang.hpp"

namespace troupe::jobs::grpo {

/// Member d · T + t of the learner: shard t of data-parallel learner d. All members make the same calls.
class Learner {
 public:
  Learner() = default;
  explicit Learner(scheduler::GangPlace place) : place_(std::move(place)) {}

  Result<Trained> train(const Train& message);
  Result<Saved> save(const SaveCheckpoint& message);
  Result<std::shared_ptr<const PublishedWeights>> read_weights(const ReadWeights& message);
  static void handlers(Handlers<Learner>& on) { on.message<&Learner::train>().message<&Learner::save>().message<&Learner::read_weights>(); }

 private:
  Result<void> open();
  Result<void> begin();
  Result<void> publish(std::uint64_t version);
  Result<std::vector<std::vector<float>>> reference_logprobs(const std::vector<models::PolicySequence>& batch);

  scheduler::GangPlace place_;
  std::unique_ptr<collectives::Communicator> group_, tensor_, data_;
  std::unique_ptr<models::ThreadPool> pool_;
  std::unique_ptr<models::Trainer> trainer_;
  std::unique_ptr<models::Model> reference_;  ///< only with a KL loss
  std::shared_ptr<const PublishedWeights> published_;
  bool is_open_ = false;
};

using LearnerFront = scheduler::GangFront<Train, SaveCheckpoint>;

models::OptimizerSettings optimizer_settings(const GrpoConfig& config);
models::PolicySettings policy_settings(const GrpoConfig& config);

}  // namespace troupe::jobs::grpo
