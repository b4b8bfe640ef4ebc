#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "actors/base/error.hpp"
#include "actors/base/fields.hpp"
#include "models/kernels/thread_pool.hpp"
#include "models/tokenizer.hpp"

namespace troupe::models {

/// How a token is drawn. Order: logits ÷ temperature, top-k, top-p, min-p; what is left is renormalised.
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

/// Names one choice among all of a run, with the seed: no two share all three.
struct Choice {
  std::uint64_t prompt = 0;    ///< the global draw counter
  std::uint32_t sample = 0;
  std::uint32_t position = 0;  ///< of the chosen token in its sequence
};

struct Sampled {
  TokenId token = 0;
  float logprob = 0.0F;  ///< natural; log-softmax of logits ÷ temperature (temperature 0: of the logits) over the whole vocabulary
};

/// Draws tokens from rows of logits; a choice is a function of logits, settings and its name alone. Keeps scratch memory; one thread at a time.
class Sampler {
 public:
  /// logits: [vocabulary], at least one. A NaN is less likely than all others. Precondition: check_sampling holds.
  Sampled sample(std::span<const float> logits, const Sampling& sampling, const Choice& choice);

 private:
  struct Candidate {
    TokenId token;
    float logit;  ///< divided by the temperature
  };
  TokenId draw_token(std::span<const float> logits, const Sampling& sampling, const Choice& choice);
  void truncate(const Sampling& sampling);

  ThreadPool serial_;
  std::vector<Candidate> candidates_;
  std::vector<double> weights_;
};

}  // namespace troupe::models
