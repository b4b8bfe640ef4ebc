#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "models/kernels/segments.hpp"
#include "models/kernels/thread_pool.hpp"

namespace troupe::models {

/// log Σ exp as (maximum, Σ exp(z − maximum)); sum 0 means no terms (an empty segment), which combine passes through.
/// weighted: Σ exp(z − maximum) (z − maximum), for the entropy.
struct LogSumExp {
  float maximum = 0.0F;
  float sum = 0.0F;
  float weighted = 0.0F;
};

LogSumExp combine(const LogSumExp& left, const LogSumExp& right);

/// Combines the shards' subtrees, in the order of the members (1, 2, 4 or 8 of them), as one shard would have.
LogSumExp combine_shards(std::span<const LogSumExp> shards);

/// states [rows] of z = logits / temperature (none at temperature 1), logits [rows, cuts.total()]: the segments that `cuts` holds, in
/// their tree. With tensor parallelism: all_gather the states, then combine_shards.
void log_sum_exp(ThreadPool& pool, std::span<LogSumExp> states, std::span<const float> logits, const SegmentCuts& cuts, float temperature);

/// log p of one logit under the whole vocabulary's state: (z − maximum) − log(sum), in double.
double log_probability(float logit, float temperature, const LogSumExp& whole);

/// Entropy of the distribution: log(sum) − weighted / sum, in double.
double entropy(const LogSumExp& whole);

/// dlogits [rows, local] for dL/dlog p(target) = coefficients[row]: coefficient · ((local index is the target ? 1 : 0) − p) / temperature.
/// Cross-entropy has coefficients −1 / count. targets: global ids; `first` is the global id of local index 0. dlogits may alias logits.
/// A row with coefficient 0 gives zeros.
void log_probability_gradient(ThreadPool& pool, std::span<float> dlogits, std::span<const float> logits, std::span<const LogSumExp> whole,
                              std::span<const std::uint32_t> targets, std::span<const float> coefficients, std::size_t first, float temperature);

/// dlogits += coefficients[row] · dH/dlogits, H the entropy: −p (log p + H) / temperature.
void add_entropy_gradient(ThreadPool& pool, std::span<float> dlogits, std::span<const float> logits, std::span<const LogSumExp> whole,
                          std::span<const float> coefficients, float temperature);

}  // namespace troupe::models
