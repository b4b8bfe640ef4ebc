#include "models/sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "actors/base/check.hpp"
#include "actors/base/philox.hpp"
#include "models/kernels/segments.hpp"
#include "models/kernels/vocabulary.hpp"
#include "models/numerics/double_math.hpp"

namespace troupe::models {
namespace {

/// Total order: the likelier first, ties to the lower id. NaN was replaced before.
constexpr auto kLikelier = [](const auto& a, const auto& b) { return a.logit != b.logit ? a.logit > b.logit : a.token < b.token; };

float ordered(float logit) { return std::isnan(logit) ? -std::numeric_limits<float>::infinity() : logit; }

TokenId likeliest(std::span<const float> logits) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < logits.size(); ++i) {
    if (ordered(logits[i]) > ordered(logits[best])) best = i;
  }
  return static_cast<TokenId>(best);
}

}  // namespace

Result<void> check_sampling(const Sampling& sampling) {
  const auto refuse = [](std::string_view name, std::string_view wanted, float got) {
    return Error{ErrorCode::bad_input, fmt::format("{}: want {}, got {}", name, wanted, got)};
  };
  // Written so that NaN is refused too.
  if (!(sampling.temperature >= 0.0F && sampling.temperature <= 1e6F)) return refuse("temperature", "0 to 1000000", sampling.temperature);
  if (sampling.temperature > 0.0F && sampling.temperature < 1e-6F) return refuse("temperature", "0, or at least 0.000001", sampling.temperature);
  if (!(sampling.top_p > 0.0F && sampling.top_p <= 1.0F)) return refuse("top_p", "above 0, at most 1", sampling.top_p);
  if (!(sampling.min_p >= 0.0F && sampling.min_p <= 1.0F)) return refuse("min_p", "0 to 1", sampling.min_p);
  return {};
}

Sampled Sampler::sample(std::span<const float> logits, const Sampling& sampling, const Choice& choice) {
  TROUPE_CHECK(!logits.empty(), "a vocabulary has tokens");
  const float temperature = sampling.temperature > 0.0F ? sampling.temperature : 1.0F;
  LogSumExp whole;
  log_sum_exp(serial_, std::span(&whole, 1), logits, SegmentCuts::of(logits.size()), temperature);
  const TokenId token = sampling.temperature > 0.0F ? draw_token(logits, sampling, choice) : likeliest(logits);
  return {token, static_cast<float>(log_probability(logits[token], temperature, whole))};
}

TokenId Sampler::draw_token(std::span<const float> logits, const Sampling& sampling, const Choice& choice) {
  candidates_.resize(logits.size());
  float top = -std::numeric_limits<float>::infinity();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    candidates_[i] = {static_cast<TokenId>(i), ordered(logits[i] / sampling.temperature)};
    top = std::max(top, candidates_[i].logit);
  }
  if (!std::isfinite(top)) return likeliest(logits);  // no distribution: all −∞, or a +∞ that takes all
  truncate(sampling);
  double total = 0.0;
  weights_.resize(candidates_.size());
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    weights_[i] = numerics::exp(double{candidates_[i].logit} - double{top});
    total += weights_[i];
  }
  const auto words = draw({.seed = sampling.seed, .purpose = Purpose::sample, .prompt = choice.prompt, .sample = choice.sample, .position = choice.position});
  const double wanted = uniform_double(words[0], words[1]) * total;
  double reached = 0.0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (weights_[i] == 0.0) continue;
    reached += weights_[i];
    last = i;
    if (reached > wanted) break;
  }
  return candidates_[last].token;
}

/// Leaves the candidates that may be drawn, ascending by id, so that a cut that cuts nothing changes no choice.
void Sampler::truncate(const Sampling& sampling) {
  const auto keep = [&](std::size_t count) { candidates_.resize(count); };
  bool sorted = false;
  if (sampling.top_k > 0 && sampling.top_k < candidates_.size()) {
    std::ranges::nth_element(candidates_, candidates_.begin() + sampling.top_k, kLikelier);
    keep(sampling.top_k);
  }
  if (sampling.top_p < 1.0F) {
    std::ranges::sort(candidates_, kLikelier);
    sorted = true;
    const double top = candidates_.front().logit;
    double total = 0.0;
    weights_.resize(candidates_.size());
    for (std::size_t i = 0; i < candidates_.size(); ++i) total += weights_[i] = numerics::exp(double{candidates_[i].logit} - top);
    double reached = 0.0;
    std::size_t count = 0;
    while (count < candidates_.size() && reached < double{sampling.top_p} * total) reached += weights_[count++];
    keep(count);
  }
  if (sampling.min_p > 0.0F) {
    const double top = std::ranges::max(candidates_, {}, &Candidate::logit).logit;
    std::erase_if(candidates_, [&](const Candidate& candidate) { return numerics::exp(double{candidate.logit} - top) < double{sampling.min_p}; });
  }
  if (sorted || sampling.top_k > 0) std::ranges::sort(candidates_, {}, &Candidate::token);
}

}  // namespace troupe::models
