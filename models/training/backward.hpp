#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "actors/base/error.hpp"
#include "models/kernels/gradients.hpp"
#include "models/kernels/packed_matrix.hpp"
#include "models/model.hpp"

namespace troupe::models {

/// Gradient trees by parameter: a shard's part. A tied model's output matrix has a tree of its own under kOutputMatrix; q and k norms
/// have one weight a head until they are finished.
using GradientTrees = std::map<std::string, GradientNodes>;
inline constexpr std::string_view kOutputMatrix = "lm_head.weight";
inline constexpr std::string_view kEmbedding = "model.embed_tokens.weight";

/// One sequence between forward and backward. Row t predicts token t + 1; all are [length − 1].
struct SequenceRowsLoss {
  std::size_t span = 0;                    ///< which of the batch's
  std::span<const float> logprobs;
  std::span<const LogSumExp> states;       ///< entropy(states[t]) is the row's
  std::span<float> slopes;                 ///< to fill: d loss / d logprob; 0 at first
  std::span<float> entropy_slopes;         ///< to fill: d loss / d entropy
};

/// The backward pass of one shard: the tape of a batch of whole sequences in, gradient trees out. Holds the weights once more, packed for
/// gradients of inputs. One thread at a time; with tensor parallelism all members make the same calls.
class Backward {
 public:
  /// The model must outlive it. update comes before run. logits_max: floats of logits held at a time (256 MiB), unless one sequence has more.
  explicit Backward(Model& model, std::size_t logits_max = std::size_t{1} << 26U);

  /// New weights: the shard's parts, all of them.
  void update(const Weights& shard);

  /// Asks `loss` for each sequence in turn, then adds the batch's nodes to `trees`; span i has global index first + i, and the trees
  /// end at `first`. Errors: a collective's.
  using Loss = std::function<void(const SequenceRowsLoss&)>;
  Result<void> run(const Tape& tape, float temperature, std::uint64_t first, const Loss& loss, GradientTrees& trees);

 private:
  struct Layer {
    PackedMatrix qkv, o, gate_up, down;
    std::vector<float> input_norm, post_norm, q_norm, k_norm;
  };
  struct Pass;
  SegmentCuts shard_cuts(std::size_t size) const;

  Model& model_;
  std::size_t logits_max_;
  std::vector<Layer> layers_;
  PackedMatrix output_;
  std::vector<float> norm_;
};

}  // namespace troupe::models
