#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/base/error.hpp"
#include "actors/base/fields.hpp"
#include "models/rl/aggregation.hpp"

namespace troupe::models::rl {

enum class LossMode : std::uint8_t { vanilla, gspo, cispo, gpg, sapo, geo_mean };

/// `actor.policy_loss.loss_mode`. Errors: bad_input naming those known.
Result<LossMode> parse_loss_mode(std::string_view name);

/// What the mode makes of loss_agg_mode: gspo is always seq-mean-token-mean, geo_mean a mean over sequences.
Aggregation aggregation_of(LossMode mode, Aggregation wanted);

struct Clipping {
  double clip_ratio_low = 0.2;
  double clip_ratio_high = 0.2;
  double clip_ratio_c = 3.0;  ///< of vanilla's dual clip
  double tau_pos = 1.0;       ///< of sapo
  double tau_neg = 1.05;
  TROUPE_FIELDS(clip_ratio_low, clip_ratio_high, clip_ratio_c, tau_pos, tau_neg)
};

/// The tokens of one response; all [response].
struct PolicyTokens {
  std::span<const double> logprobs;
  std::span<const double> old_logprobs;
  std::span<const double> advantages;
  std::span<const std::uint8_t> mask;
  std::span<const double> weights;  ///< importance weights that multiply the loss; empty: 1
};

struct PolicyLoss {
  std::vector<double> loss;    ///< [response]; 0 where the mask is. geo_mean's single loss of a sequence is spread evenly.
  std::vector<double> slope;   ///< d Σ loss / d logprob; what is detached counts as constant
  double kl = 0.0;             ///< Σ mask · −(log-ratio)
  std::uint64_t clipped = 0;   ///< tokens
  std::uint64_t clipped_lower = 0;
};

/// Losses and slopes of one response (README.md, "Losses").
PolicyLoss policy_loss(LossMode mode, const Clipping& clipping, const PolicyTokens& tokens);

/// Weights for a rollout that another policy than old_logprobs' drew, w = exp(clamp(old − rollout, ±20)).
struct RolloutCorrection {
  std::string level = "token";    ///< "token", or "sequence": the product over the response
  std::string mode = "truncate";  ///< "truncate": min(w, high); "mask" (IcePop): 0 outside [low, high]
  double low = 0.5;
  double high = 2.0;
  TROUPE_FIELDS(level, mode, low, high)
};

/// [response]. Errors: bad_input for an unknown level or mode.
Result<std::vector<double>> importance_weights(const RolloutCorrection& settings, std::span<const double> old_logprobs, std::span<const double> rollout_logprobs,
                                               std::span<const std::uint8_t> mask);

}  // namespace troupe::models::rl
