#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "actors/base/error.hpp"
#include "models/model.hpp"
#include "models/training/optimizer_settings.hpp"
#include "models/training/sequences.hpp"

namespace troupe::models {

/// All that a trainer's future depends on, whole and without a layout: it restores on any number of members.
struct TrainerState {
  std::uint64_t step = 0;  ///< steps done
  Weights weights;
  Weights first_moments;   ///< by parameter, in its shape
  Weights second_moments;
  TROUPE_FIELDS(step, weights, first_moments, second_moments)
};

/// Trains a model, alone or as one member of a gang of data · tensor members. All members make the same calls with the same whole batch;
/// each computes its part, and all return the same. Weights, metrics and log-probabilities are functions of the batch and its order: no
/// bit depends on micro-batch, threads, data-parallel or tensor-parallel degree. Blocks; one thread at a time. Without members it never waits.
///
/// Errors of input are found before anything is computed or sent, alike on every member; a gradient that is not finite is bad_input too.
/// After a collective's error the gang is lost. After any error the weights are those before the step.
class Trainer {
 public:
  /// `whole` becomes float32. tensor: the group of this model's shards; data: the group of equal shards; null for one. Pool and groups
  /// must outlive the trainer. Errors: bad_input for settings, weights or degrees.
  static Result<std::unique_ptr<Trainer>> create(const ModelConfig& config, const Weights& whole, const OptimizerSettings& settings, ThreadPool& pool,
                                                 collectives::Communicator* tensor = nullptr, collectives::Communicator* data = nullptr);
  ~Trainer();

  /// For each sequence of n tokens the n − 1 log-probabilities that Engine::score gives: the same bits.
  Result<std::vector<std::vector<float>>> logprobs(std::span<const std::vector<TokenId>> sequences, float temperature, std::uint32_t micro_batch);

  /// One step on cross-entropy: −Σ log p / count over the masked tokens of the whole batch. micro_batch: sequences in one pass.
  /// Metrics: train/loss, train/grad_norm, train/lr, train/global_tokens. Errors: bad_input naming the sequence.
  Result<StepMetrics> train_tokens(std::span<const TrainingSequence> batch, std::uint32_t micro_batch);

  /// The loss of train_tokens without a step.
  Result<double> evaluate_tokens(std::span<const TrainingSequence> batch, std::uint32_t micro_batch);

  struct PolicyResult {
    StepMetrics metrics;
    std::vector<std::vector<float>> logprobs;  ///< [response] of each, before the update
  };
  /// One step on pg − entropy_coeff · H + kl_loss_coef · KL (models/rl), aggregated over the whole batch. Metrics: actor/pg_loss, ppo_kl,
  /// pg_clipfrac, pg_clipfrac_lower, entropy, kl_loss (where there is a reference), grad_norm, lr.
  Result<PolicyResult> train_policy(std::span<const PolicySequence> batch, const PolicySettings& settings, std::uint32_t micro_batch);

  /// Whole tensors, on every member.
  Result<Weights> weights();
  Result<TrainerState> state();
  /// Errors: bad_input for a state of another model; then nothing changed.
  Result<void> restore(const TrainerState& state);

  std::uint64_t steps_done() const;
  /// The rate of later steps (a schedule of one's own, or a run that goes on with other settings). Errors: bad_input.
  Result<void> set_optimizer(const OptimizerSettings& settings);
  /// The model itself, always with the newest weights: to generate from it between steps.
  Model& model();

 private:
  struct State;
  explicit Trainer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe::models
