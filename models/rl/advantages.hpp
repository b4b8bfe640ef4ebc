#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "actors/base/error.hpp"
#include "actors/base/fields.hpp"

namespace troupe::models::rl {

/// One response of a prompt and what an estimator needs of it. All vectors are [response].
struct Response {
  std::uint64_t group = 0;          ///< responses of one prompt share it, wherever they stand in the batch
  std::vector<double> rewards{};    ///< by token; an outcome's stands at one of them
  std::vector<std::uint8_t> mask{};  ///< 1: a token of the model, 0: of a tool
  std::vector<double> values{};     ///< the critic's; gae alone reads them
  double baseline = 0.0;            ///< reward of the greedy response; remax alone reads it
};

struct AdvantageSettings {
  std::string adv_estimator = "grpo";  ///< gae, grpo, rloo, reinforce_plus_plus, reinforce_plus_plus_baseline, remax, opo, gpg, grpo_passk
  bool norm_adv_by_std_in_grpo = true;
  double gamma = 1.0;
  double lam = 1.0;
  TROUPE_FIELDS(adv_estimator, norm_adv_by_std_in_grpo, gamma, lam)
};

/// [responses][response]; 0 where the mask is.
struct Advantages {
  std::vector<std::vector<double>> advantages;
  std::vector<std::vector<double>> returns;
};

/// Of the whole global batch at once: groups and whitening cross responses. A function of the batch and its order alone.
/// Outcome estimators take R = Σ rewards; a group of one has mean 0 and deviation 1. Errors: bad_input for an unknown estimator (names
/// those known), vectors of different lengths, fewer than two tokens to whiten, a group of one for grpo_passk.
Result<Advantages> advantages(std::span<const Response> batch, const AdvantageSettings& settings);

}  // namespace troupe::models::rl
