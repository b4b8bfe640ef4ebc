#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "actors/base/error.hpp"
#include "models/batch.hpp"
#include "models/config.hpp"
#include "models/kernels/attention.hpp"
#include "models/kernels/thread_pool.hpp"
#include "models/kernels/vocabulary.hpp"
#include "models/kv_cache.hpp"
#include "models/parameters.hpp"
#include "models/tape.hpp"
#include "models/tensor.hpp"
#include "transport/collectives/communicator.hpp"

namespace troupe::models {

class RopeTable;

/// A model, or one shard of it, ready to compute: weights packed for the linear kernels. The same forward pass serves prefill, decode,
/// scoring and training. One thread at a time; with tensor parallelism all members make the same calls.
class Model {
 public:
  /// The whole model in this process. The pool must outlive the model. Errors: bad_input for weights that do not fit the configuration.
  static Result<std::unique_ptr<Model>> create(const ModelConfig& config, const Weights& weights, ThreadPool& pool);
  /// Shard communicator.member() of communicator.size(); `weights` are whole. Errors: also bad_input for a degree that the model does
  /// not allow (names those it does). The communicator must outlive the model.
  static Result<std::unique_ptr<Model>> create(const ModelConfig& config, const Weights& weights, ThreadPool& pool, collectives::Communicator& communicator);
  ~Model();

  const ModelConfig& config() const;
  Shard shard() const;
  ThreadPool& pool() const;
  collectives::Communicator* communicator() const;  ///< null without tensor parallelism, and for a group of one
  Range vocabulary() const;                         ///< the shard's part of the logits
  AttentionShape attention_shape() const;           ///< of the shard
  std::uint64_t version() const;                    ///< of the weights; 0 at first

  /// New weights in place, whole tensors (the shard takes its part) or the shard's own parts. All parameters or some; the others stay.
  /// KV caches filled before are stale. Errors: bad_input naming a tensor that is not one of the model's or has another shape; then nothing changed.
  Result<void> update(const Weights& whole, std::uint64_t version);
  Result<void> update_shard(const Weights& parts, std::uint64_t version);

  KvCache make_cache(std::uint32_t slots, std::uint32_t length_max) const;
  /// Rope tables for at least so many positions; forward calls it. Precondition: at most config().positions_max.
  const RopeTable& rope_table(std::uint32_t positions);

  /// Computes a batch up to the last norm. Spans with a cache read and extend their slot; without one every span is a whole sequence from
  /// position 0. rows: which rows are wanted, ascending. hidden: becomes [rows.size(), hidden_size]. tape: when given (without a cache),
  /// becomes what backward needs. Errors: bad_input for a token beyond the vocabulary or a position beyond the model's; a collective's.
  Result<void> forward(const Batch& batch, KvCache* cache, std::span<const std::uint32_t> rows, Activation& hidden, Tape* tape = nullptr);

  /// logits: becomes [rows, vocabulary().size()], the shard's part, for hidden [rows, hidden_size] from forward.
  void project(std::span<const float> hidden, Activation& logits);

  /// Whole rows [rows, vocab_size] from the shards' parts; with one shard it moves. Collective.
  Result<void> gather_logits(Activation& part, Activation& whole);

  /// Log-probabilities of given tokens, log-softmax of logits ÷ temperature under the eight-segment rule, from the shards' parts without
  /// gathering. part: [targets.size(), vocabulary().size()]. Collective.
  struct TokenLogprobs {
    std::vector<float> logprobs;    ///< [rows]
    std::vector<LogSumExp> states;  ///< [rows] of the whole vocabulary: what the gradient kernels take
  };
  Result<TokenLogprobs> token_logprobs(std::span<const float> part, std::span<const TokenId> targets, float temperature);

 private:
  struct State;
  explicit Model(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe::models
