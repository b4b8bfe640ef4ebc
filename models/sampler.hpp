#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/base/error.hpp"
#include "actors/base/fields.hpp"
#include "actors/base/philox.hpp"
#include "models/tokenizer.hpp"

namespace troupe::models {

/// How a token is drawn. Order: logits ÷ temperature, top-k, top-p, min-p; the rest is renormalised.
struct Sampling {
  float temperature = 1.0F;  ///< 0: greedy, ties to the lower id
  std::uint32_t top_k = 0;   ///< keep the k likeliest; 0: all
  float top_p = 1.0F;        ///< keep the fewest likeliest whose probabilities reach p
  float min_p = 0.0F;        ///< keep what has at least min_p of the likeliest's probability
  std::uint64_t seed = 0;
  TROUPE_FIELDS(temperature, top_k, top_p, min_p, seed)
};

/// Errors: bad_input naming the setting and its range.
Result<void> check_sampling(const Sampling& sampling);

struct Sampled {
  TokenId token = 0;
  float logprob = 0.0F;  ///< natural; log-softmax of logits ÷ temperature (temperature 0: of the logits) over the whole vocabulary
};

/// Draws one token from a row of logits [vocabulary]; a function of logits, settings and key alone (key.seed and purpose are set here).
/// scratch is overwritten with logits ÷ temperature.
Sampled sample(std::span<const float> logits, const Sampling& sampling, DrawKey key, std::vector<float>& scratch);

}  // namespace troupe::models
