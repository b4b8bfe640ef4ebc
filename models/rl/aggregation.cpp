#include "models/rl/aggregation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/numerics/trees.hpp"

namespace troupe::models::rl {

Result<Aggregation> parse_aggregation(std::string_view name) {
  constexpr std::string_view kNames[] = {"token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-sum-norm", "seq-mean-token-mean"};
  const auto* found = std::ranges::find(kNames, name);
  if (found != std::end(kNames)) return static_cast<Aggregation>(found - std::begin(kNames));
  return Error{ErrorCode::bad_input,
               fmt::format("loss_agg_mode: want token-mean, token-sum, seq-mean-token-sum, seq-mean-token-sum-norm or seq-mean-token-mean, got '{}'", name)};
}

double sequence_divisor(Aggregation mode, std::uint64_t sequence_tokens) {
  return mode == Aggregation::seq_mean_token_mean ? static_cast<double>(sequence_tokens) + 1e-8 : 1.0;
}

double batch_divisor(Aggregation mode, const Counts& counts, double loss_scale_factor) {
  if (mode == Aggregation::token_sum) return 1.0;
  const std::uint64_t count = mode == Aggregation::token_mean ? counts.tokens : counts.sequences;
  const double divisor = static_cast<double>(std::max<std::uint64_t>(1, count));
  return mode == Aggregation::seq_mean_token_sum_norm ? divisor * loss_scale_factor : divisor;
}

double aggregate(Aggregation mode, std::span<const std::vector<double>> losses, std::span<const std::vector<std::uint8_t>> masks, double loss_scale_factor) {
  Counts counts;
  std::vector<double> sums;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    std::uint64_t tokens = 0;
    double sum = 0.0;
    for (std::size_t t = 0; t < losses[i].size(); ++t) {
      if (masks[i][t] == 0) continue;
      sum += losses[i][t];
      ++tokens;
    }
    counts.add(tokens);
    sums.push_back(sum / sequence_divisor(mode, tokens));
  }
  if (sums.empty()) return 0.0;
  return numerics::pairwise_tree(std::span<const double>(sums)) / batch_divisor(mode, counts, loss_scale_factor);
}

}  // namespace troupe::models::rl
