#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "actors/base/error.hpp"
#include "models/batch.hpp"
#include "models/config.hpp"
#include "models/kv_cache.hpp"
#include "models/parameters.hpp"
#include "models/tape.hpp"
#include "models/tensor.hpp"
#include "transport/collectives/communicator.hpp"

namespace troupe::models {

class ThreadPool;

/// A model, or one shard of it, ready to compute: weights packed for the linear kernels. The same forward pass serves prefill, decode,
/// scoring and training. One thread at a time; with tensor parallelism all members make the same calls.
class Model {
 public:
  /// The whole model in this process. The pool must outlive the model.
  static Result<std::unique_ptr<Model>> create(const ModelConfig& config, const Weights& weights, ThreadPool& pool);
  /// Shard communicator.member() of communicator.size(); `weights` are whole. Errors: bad_input for a degree that the model does not
  /// allow (names those it does), or for weights that do not fit the configuration.
  static Result<std::unique_ptr<Model>> create(const ModelConfig& config, const Weights& weights, ThreadPool& pool, collectives::Communicator& communicator);
  ~Model();

  const ModelConfig& config() const;
  Shard shard() const;
  ThreadPool& pool() const;
  collectives::Communicator* communicator() const;  ///< null without tensor parallelism
  Range vocabulary() const;                         ///< the shard's part of the logits
  std::uint64_t version() const;                    ///< of the weights; 0 at first

  /// New weights in place, whole tensors (the shard takes its part) or the shard's own parts. All parameters or some; the others stay.
  /// KV caches filled before are stale. Errors: bad_input naming a tensor that is not one of the model's or has another shape.
  Result<void> update(const Weights& whole, std::uint64_t version);
  Result<void> update_shard(const Weights& parts, std::uint64_t version);

  /// Computes a batch. Spans with a cache read and extend their slot; without one every span is a whole sequence from position 0.
  /// rows: which rows' logits are wanted, ascending. logits: becomes [rows.size(), vocabulary().size()], the shard's part.
  /// tape: when given, becomes what backward needs (without a cache). Precondition: at least one span; spans that fit the cache.
  Result<void> forward(const Batch& batch, KvCache* cache, std::span<const std::uint32_t> rows, Activation& logits, Tape* tape = nullptr);

  /// Whole rows [rows, vocab_size] from the shards' parts; with one shard it moves. Collective.
  Result<void> gather_logits(Activation& part, std::uint64_t rows, Activation& whole);

  /// Log-probabilities of given tokens from the shards' parts, without gathering: log-softmax of logits ÷ temperature under the eight-segment rule.
  /// part: [targets.size(), vocabulary().size()], divided in place by temperature. Collective.
  struct TokenLogprobs {
    std::vector<float> logprobs;     ///< [rows]
    std::vector<float> maximum;      ///< [rows] of the scaled logits, over the whole vocabulary
    std::vector<float> log_sum_exp;  ///< [rows] log Σ exp(logit − maximum); a probability is exp((logit − maximum) − log_sum_exp)
  };
  Result<TokenLogprobs> token_logprobs(Activation& part, std::span<const TokenId> targets, float temperature);

 private:
  struct State;
  explicit Model(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe::models
