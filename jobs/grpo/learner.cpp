#include "jobs/grpo/learner.hpp"

#include <cmath>

#include "jobs/grpo/environment.hpp"
#include "models/numerics/double_math.hpp"
#include "models/weights.hpp"

namespace troupe::jobs::grpo {
namespace {

/// Largest and mean |p_trainer − p_rollout| over the response tokens: 0 when the log-probabilities are equal bit for bit.
struct ProbsDiff {
  double max = 0;
  double mean = 0;
};
ProbsDiff probs_diff(const std::vector<Sequence>& sequences, const std::vector<std::vector<float>>& trainer) {
  ProbsDiff diff;
  double sum = 0;
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    for (std::size_t t = 0; t < trainer[i].size(); ++t, ++count) {
      const float ours = trainer[i][t];
      const float theirs = sequences[i].rollout_logprobs[t];
      if (ours == theirs) continue;
      const double each = std::fabs(models::numerics::exp(ours) - models::numerics::exp(theirs));
      diff.max = std::fmax(diff.max, std::fmax(each, 1e-300));  // unequal logprobs never count as equal
      sum += each;
    }
  }
  diff.mean = count == 0 ? 0 : sum / static_cast<double>(count);
  return diff;
}

}  // namespace

models::OptimizerSettings optimizer_settings(const GrpoConfig& config) {
  const OptimizerConfig& optim = config.actor.optim;
  return {.learning_rate = optim.lr, .beta1 = optim.beta1, .beta2 = optim.beta2, .eps = optim.eps, .weight_decay = optim.weight_decay,
          .grad_clip = config.actor.grad_clip, .warmup_steps = optim.lr_warmup_steps, .schedule = optim.lr_scheduler_type,
          .total_steps = std::uint64_t{config.common.steps} * config.actor.ppo_epochs, .min_lr_ratio = optim.min_lr_ratio};
}

models::PolicySettings policy_settings(const GrpoConfig& config) {
  return {.loss_mode = config.actor.loss_mode, .clip_ratio_low = config.actor.clip_ratio_low, .clip_ratio_high = config.actor.clip_ratio_high,
          .clip_ratio_c = config.actor.clip_ratio_c, .loss_agg_mode = config.actor.loss_agg_mode,
          .kl_loss_coef = config.actor.use_kl_loss ? config.actor.kl_loss_coef : 0.0, .kl_loss_type = config.actor.kl_loss_type,
          .entropy_coeff = config.actor.entropy_coeff, .temperature = config.rollout.temperature > 0 ? config.rollout.temperature : 1.0};
}

Result<void> Learner::begin() {
  if (is_open_) return {};
  Result<void> opened = open();
  if (opened) is_open_ = true;
  else scheduler::abandon_gang(place_, opened.error());
  return opened;
}

Result<void> Learner::open() {
  if (Result<void> placed = scheduler::take_place(place_); !placed) return placed.error();
  const Environment& here = environment();
  pool_ = std::make_unique<models::ThreadPool>(here.threads);
  if (place_.size() > 1) {
    const std::uint32_t shards = here.config.learner.tensor_parallel;
    Result<std::unique_ptr<collectives::Communicator>> group = scheduler::open_communicator(place_);
    if (!group) return group.error();
    group_ = std::move(*group);
    Result<std::unique_ptr<collectives::Communicator>> tensor = group_->split(place_.member / shards, place_.member % shards);
    if (!tensor) return tensor.error();
    tensor_ = std::move(*tensor);
    Result<std::unique_ptr<collectives::Communicator>> data = group_->split(place_.member % shards, place_.member / shards);
    if (!data) return data.error();
    data_ = std::move(*data);
  }
  const models::Weights& weights = here.start ? here.start->trainer.weights : *here.start_weights;
  Result<std::unique_ptr<models::Trainer>> trainer =
      models::Trainer::create(here.model, weights, optimizer_settings(here.config), *pool_, tensor_.get(), data_.get());
  if (!trainer) return trainer.error();
  trainer_ = std::move(*trainer);
  if (here.start) {
    if (Result<void> restored = trainer_->restore(here.start->trainer); !restored) return restored.error();
  }
  if (here.config.actor.use_kl_loss) {
    const bool is_split = tensor_ && tensor_->size() > 1;
    Result<std::unique_ptr<models::Model>> reference = is_split ? models::Model::create(here.model, *here.start_weights, *pool_, *tensor_)
                                                                : models::Model::create(here.model, *here.start_weights, *pool_);
    if (!reference) return reference.error();
    reference_ = std::move(*reference);
  }
  return publish(here.start ? here.start->step : 0);
}

Result<void> Learner::publish(std::uint64_t version) {
  Result<models::Weights> weights = trainer_->weights();
  if (!weights) return weights.error();
  auto published = std::make_shared<PublishedWeights>();
  published->version = version;
  published->digest = models::weights_digest(*weights, environment().threads).hex();
  published->weights = std::move(*weights);
  published_ = std::move(published);
  return {};
}

Result<std::vector<std::vector<float>>> Learner::reference_logprobs(const std::vector<models::PolicySequence>& batch) {
  models::Engine engine(*reference_, {.batch_max = environment().config.rollout.batch_max});
  std::vector<std::vector<TokenId>> sequences;
  for (const models::PolicySequence& each : batch) sequences.push_back(each.tokens);
  Result<std::vector<std::vector<float>>> scores = engine.score(sequences, static_cast<float>(policy_settings(environment().config).temperature));
  if (!scores) return scores.error();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    std::vector<float>& score = (*scores)[i];
    score.erase(score.begin(), score.begin() + (batch[i].prompt_length - 1));  // what is left belongs to the response
  }
  return scores;
}

Result<Trained> Learner::train(const Train& message) {
  if (Result<void> begun = begin(); !begun) return begun.error();
  const GrpoConfig& config = environment().config;
  std::vector<models::PolicySequence> batch;
  for (const Sequence& sequence : message.sequences) {
    models::PolicySequence each{.tokens = sequence.prompt, .prompt_length = static_cast<std::uint32_t>(sequence.prompt.size()),
                                .old_logprobs = sequence.rollout_logprobs, .advantages = sequence.advantages};
    each.tokens.insert(each.tokens.end(), sequence.response.begin(), sequence.response.end());
    batch.push_back(std::move(each));
  }
  if (reference_) {
    Result<std::vector<std::vector<float>>> reference = reference_logprobs(batch);
    if (!reference) return reference.error();
    for (std::size_t i = 0; i < batch.size(); ++i) batch[i].reference_logprobs = std::move((*reference)[i]);
  }
  Trained trained{.version = message.step};
  for (std::uint32_t epoch = 0; epoch < config.actor.ppo_epochs; ++epoch) {
    Result<models::Trainer::PolicyResult> done = trainer_->train_policy(batch, policy_settings(config), config.learner.micro_batch);
    if (!done) return done.error();
    if (epoch == 0) {
      const ProbsDiff diff = probs_diff(message.sequences, done->logprobs);
      trained.metrics["training/rollout_probs_diff_max"] = diff.max;
      trained.metrics["training/rollout_probs_diff_mean"] = diff.mean;
    }
    for (const auto& [name, value] : done->metrics.values) trained.metrics[name] = value;
  }
  if (Result<void> done = publish(message.step); !done) return done.error();
  trained.digest = published_->digest;
  return trained;
}

Result<Saved> Learner::save(const SaveCheckpoint& message) {
  if (Result<void> begun = begin(); !begun) return begun.error();
  Result<models::TrainerState> state = trainer_->state();
  if (!state) return state.error();
  const Checkpoint checkpoint{.step = message.director.step, .director = message.director, .trainer = std::move(*state)};
  const Saved saved{.step = checkpoint.step, .digest = content_digest128(checkpoint).hex()};
  if (place_.member == 0 && environment().write_checkpoint) {
    if (Result<void> written = environment().write_checkpoint(checkpoint.step, checkpoint); !written) return written.error();
  }
  return saved;
}

Result<std::shared_ptr<const PublishedWeights>> Learner::read_weights(const ReadWeights& message) {
  if (!published_ || published_->version != message.version) {
    return Error{ErrorCode::bad_input, "weights: want version " + std::to_string(message.version) + ", got " +
                                           (published_ ? std::to_string(published_->version) : std::string("none"))};
  }
  return published_;
}

}  // namespace troupe::jobs::grpo
