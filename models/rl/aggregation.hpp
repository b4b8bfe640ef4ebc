#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/base/error.hpp"

namespace troupe::models::rl {

/// How losses of tokens become one number (`loss_agg_mode`).
enum class Aggregation : std::uint8_t { token_mean, token_sum, seq_mean_token_sum, seq_mean_token_sum_norm, seq_mean_token_mean };

/// "token-mean" and so on. Errors: bad_input naming those allowed.
Result<Aggregation> parse_aggregation(std::string_view name);

/// Of the whole global batch: tokens with mask 1 and sequences that have one.
struct Counts {
  std::uint64_t tokens = 0;
  std::uint64_t sequences = 0;

  void add(std::uint64_t sequence_tokens) {
    tokens += sequence_tokens;
    sequences += sequence_tokens > 0 ? 1 : 0;
  }
};

/// What a sequence's Σ loss · mask is divided by before sequences are added: n + 1e-8 for seq-mean-token-mean, else 1.
double sequence_divisor(Aggregation mode, std::uint64_t sequence_tokens);
/// What the sum over sequences is divided by; 1 for an empty batch. loss_scale_factor is of seq-mean-token-sum-norm alone.
double batch_divisor(Aggregation mode, const Counts& counts, double loss_scale_factor = 1.0);

/// d aggregate / d loss of one token of a sequence with so many tokens.
inline double token_weight(Aggregation mode, std::uint64_t sequence_tokens, const Counts& counts, double loss_scale_factor = 1.0) {
  return 1.0 / sequence_divisor(mode, sequence_tokens) / batch_divisor(mode, counts, loss_scale_factor);
}

/// The aggregate: a chain over each sequence, the tree over sequences. losses and masks: [sequences][tokens].
double aggregate(Aggregation mode, std::span<const std::vector<double>> losses, std::span<const std::vector<std::uint8_t>> masks, double loss_scale_factor = 1.0);

}  // namespace troupe::models::rl
