#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "actors/base/error.hpp"
#include "actors/base/fields.hpp"
#include "models/rl/policy_loss.hpp"
#include "models/tokenizer.hpp"

namespace troupe::models {

/// A text to learn.
struct TrainingSequence {
  std::vector<TokenId> tokens;
  std::vector<std::uint8_t> mask;  ///< [tokens]; 1: this token's log-probability counts. Never that of token 0.
  TROUPE_FIELDS(tokens, mask)
};

/// A prompt and a response to learn from; what is [response] may be empty where it says so.
struct PolicySequence {
  std::vector<TokenId> tokens;             ///< prompt, then response
  std::uint32_t prompt_length = 0;         ///< at least 1
  std::vector<float> old_logprobs{};       ///< [response] of the policy that the ratios refer to; empty: this one's own, so every ratio is 1
  std::vector<float> reference_logprobs{};  ///< [response] for the KL loss; empty without
  double advantage = 0.0;                  ///< of every token
  std::vector<double> advantages{};        ///< [response] instead, for estimators by token
  std::vector<std::uint8_t> mask{};        ///< [response]; 0: not the model's token (a tool's). Empty: all 1
  std::vector<double> weights{};           ///< [response] importance weights that multiply the loss. Empty: all 1
  TROUPE_FIELDS(tokens, prompt_length, old_logprobs, reference_logprobs, advantage, advantages, mask, weights)
};

/// verl's actor settings.
struct PolicySettings {
  std::string loss_mode = "vanilla";  ///< vanilla, gspo, cispo, gpg, sapo, geo_mean
  double clip_ratio_low = 0.2;
  double clip_ratio_high = 0.2;
  double clip_ratio_c = 3.0;
  double tau_pos = 1.0;
  double tau_neg = 1.05;
  std::string loss_agg_mode = "token-mean";
  double loss_scale_factor = 1.0;     ///< of seq-mean-token-sum-norm
  double kl_loss_coef = 0.0;          ///< 0: no KL loss (verl's use_kl_loss); 0.001 is usual
  std::string kl_loss_type = "low_var_kl";
  double entropy_coeff = 0.0;
  double temperature = 1.0;           ///< of the rollout
  TROUPE_FIELDS(loss_mode, clip_ratio_low, clip_ratio_high, clip_ratio_c, tau_pos, tau_neg, loss_agg_mode, loss_scale_factor, kl_loss_coef, kl_loss_type,
                entropy_coeff, temperature)

  rl::Clipping clipping() const {
    return {.clip_ratio_low = clip_ratio_low, .clip_ratio_high = clip_ratio_high, .clip_ratio_c = clip_ratio_c, .tau_pos = tau_pos, .tau_neg = tau_neg};
  }
};

/// By the names that users chart: actor/pg_loss, train/loss, ….
struct StepMetrics {
  std::map<std::string, double> values;
  TROUPE_FIELDS(values)
};

}  // namespace troupe::models
