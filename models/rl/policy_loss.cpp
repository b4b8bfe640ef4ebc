#include "models/rl/policy_loss.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/numerics/double_math.hpp"

namespace troupe::models::rl {
namespace {

constexpr double kLogRatioMax = 20.0;

double clamped_log_ratio(double log_ratio) { return std::clamp(log_ratio, -kLogRatioMax, kLogRatioMax); }

/// One token's loss and its derivative by the log-probability.
struct Token {
  double loss = 0.0;
  double slope = 0.0;
  bool clipped = false;
  bool clipped_lower = false;
};

/// max(−Aρ, −A clip(ρ)); `moves` says whether ρ follows the log-probability (no clamp holds).
Token clipped_surrogate(const Clipping& c, double advantage, double ratio, bool moves) {
  const double held = std::clamp(ratio, 1.0 - c.clip_ratio_low, 1.0 + c.clip_ratio_high);
  const double free_loss = -advantage * ratio;
  const double held_loss = -advantage * held;
  const bool clipped = held_loss > free_loss;
  return {.loss = clipped ? held_loss : free_loss, .slope = clipped || !moves ? 0.0 : free_loss, .clipped = clipped};
}

Token vanilla(const Clipping& c, double advantage, double ratio, bool moves) {
  Token token = clipped_surrogate(c, advantage, ratio, moves);
  const double limit = -advantage * c.clip_ratio_c;
  if (advantage < 0.0 && token.loss > limit) {
    token.loss = limit;
    token.slope = 0.0;
    token.clipped_lower = true;
  }
  return token;
}

Token cispo(const Clipping& c, double advantage, double ratio, double logprob) {
  const double held = std::clamp(ratio, 1.0 - c.clip_ratio_low, 1.0 + c.clip_ratio_high);
  return {.loss = -held * advantage * logprob, .slope = -held * advantage, .clipped = held != ratio};
}

Token sapo(const Clipping& c, double advantage, double ratio, bool moves) {
  const double tau = advantage > 0.0 ? c.tau_pos : c.tau_neg;
  const double gate = 1.0 / (1.0 + numerics::exp(-tau * (ratio - 1.0)));
  return {.loss = -advantage * gate * (4.0 / tau), .slope = moves ? -advantage * 4.0 * gate * (1.0 - gate) * ratio : 0.0};
}

double count(std::span<const std::uint8_t> mask) { return static_cast<double>(std::ranges::count(mask, std::uint8_t{1})); }

double mean_log_ratio(const PolicyTokens& tokens) {
  double sum = 0.0;
  for (std::size_t t = 0; t < tokens.mask.size(); ++t) sum += tokens.mask[t] != 0 ? tokens.logprobs[t] - tokens.old_logprobs[t] : 0.0;
  return sum / std::max(1.0, count(tokens.mask));
}

/// Geometric mean of the ratios, each log-ratio held on the side that its advantage's sign names (arXiv:2507.20673).
PolicyLoss geo_mean(const Clipping& c, const PolicyTokens& tokens) {
  const std::size_t length = tokens.mask.size();
  const double n = count(tokens.mask);
  PolicyLoss out{.loss = std::vector<double>(length), .slope = std::vector<double>(length)};
  std::vector<bool> moves(length);
  double log_ratios = 0.0, advantages = 0.0, log_weights = 0.0;
  for (std::size_t t = 0; t < length; ++t) {
    if (tokens.mask[t] == 0) continue;
    const double log_ratio = tokens.logprobs[t] - tokens.old_logprobs[t];
    const double a = tokens.advantages[t];
    const double held = std::clamp(log_ratio, -c.clip_ratio_low, c.clip_ratio_high);
    const bool holds = (a > 0.0 && log_ratio > held) || (a < 0.0 && log_ratio < held);
    moves[t] = a != 0.0 && !holds;
    if (a != 0.0) log_ratios += holds ? held : log_ratio;
    advantages += a;
    if (!tokens.weights.empty()) log_weights += numerics::log(tokens.weights[t] + 1e-10);
    out.kl -= log_ratio;
    out.clipped += held != log_ratio && a > 0.0 ? 1 : 0;
    out.clipped_lower += held != log_ratio && a < 0.0 ? 1 : 0;
  }
  const double weight = tokens.weights.empty() ? 1.0 : numerics::exp(log_weights / (n + 1e-8));
  const double loss = -(advantages / (n + 1e-8)) * numerics::exp(log_ratios / (n + 1e-8)) * weight;
  for (std::size_t t = 0; t < length; ++t) {
    if (tokens.mask[t] == 0) continue;
    out.loss[t] = loss / n;
    out.slope[t] = moves[t] ? loss / (n + 1e-8) : 0.0;
  }
  return out;
}

}  // namespace

Result<LossMode> parse_loss_mode(std::string_view name) {
  constexpr std::string_view kNames[] = {"vanilla", "gspo", "cispo", "gpg", "sapo", "geo_mean"};
  const auto* found = std::ranges::find(kNames, name);
  if (found != std::end(kNames)) return static_cast<LossMode>(found - std::begin(kNames));
  return Error{ErrorCode::bad_input, fmt::format("loss_mode: want vanilla, gspo, cispo, gpg, sapo or geo_mean, got '{}'", name)};
}

Aggregation aggregation_of(LossMode mode, Aggregation wanted) {
  if (mode == LossMode::gspo) return Aggregation::seq_mean_token_mean;
  if (mode == LossMode::geo_mean) return Aggregation::seq_mean_token_sum;
  return wanted;
}

PolicyLoss policy_loss(LossMode mode, const Clipping& clipping, const PolicyTokens& tokens) {
  if (mode == LossMode::geo_mean) return geo_mean(clipping, tokens);
  const std::size_t length = tokens.mask.size();
  PolicyLoss out{.loss = std::vector<double>(length), .slope = std::vector<double>(length)};
  const double sequence_log_ratio = mode == LossMode::gspo ? mean_log_ratio(tokens) : 0.0;
  const double sequence_ratio = numerics::exp(std::min(10.0, sequence_log_ratio));
  for (std::size_t t = 0; t < length; ++t) {
    if (tokens.mask[t] == 0) continue;
    const double free_log_ratio = tokens.logprobs[t] - tokens.old_logprobs[t];
    const double log_ratio = clamped_log_ratio(free_log_ratio);
    const bool moves = log_ratio == free_log_ratio;
    const double ratio = numerics::exp(log_ratio);
    const double a = tokens.advantages[t];
    Token token;
    switch (mode) {
      case LossMode::vanilla: token = vanilla(clipping, a, ratio, moves); break;
      case LossMode::gspo: token = clipped_surrogate(clipping, a, sequence_ratio, sequence_log_ratio <= 10.0); break;
      case LossMode::cispo: token = cispo(clipping, a, ratio, tokens.logprobs[t]); break;
      case LossMode::gpg: token = {.loss = -a * tokens.logprobs[t], .slope = -a}; break;
      case LossMode::sapo: token = sapo(clipping, a, ratio, moves); break;
      case LossMode::geo_mean: break;
    }
    const double weight = tokens.weights.empty() ? 1.0 : tokens.weights[t];
    out.loss[t] = token.loss * weight;
    out.slope[t] = token.slope * weight;
    out.kl -= mode == LossMode::gspo ? free_log_ratio : log_ratio;
    out.clipped += token.clipped ? 1 : 0;
    out.clipped_lower += token.clipped_lower ? 1 : 0;
  }
  return out;
}

Result<std::vector<double>> importance_weights(const RolloutCorrection& settings, std::span<const double> old_logprobs, std::span<const double> rollout_logprobs,
                                               std::span<const std::uint8_t> mask) {
  const auto refuse = [](std::string_view key, std::string_view allowed, std::string_view got) {
    return Error{ErrorCode::bad_input, fmt::format("rollout correction {}: want {}, got '{}'", key, allowed, got)};
  };
  const bool by_sequence = settings.level == "sequence";
  const bool masks = settings.mode == "mask";
  if (!by_sequence && settings.level != "token") return refuse("level", "token or sequence", settings.level);
  if (!masks && settings.mode != "truncate") return refuse("mode", "truncate or mask", settings.mode);
  if (old_logprobs.size() != mask.size() || rollout_logprobs.size() != mask.size()) {
    return Error{ErrorCode::bad_input, fmt::format("rollout correction: want {} log-probabilities of each, got {} and {}", mask.size(), old_logprobs.size(),
                                                   rollout_logprobs.size())};
  }
  double total = 0.0;
  for (std::size_t t = 0; t < mask.size(); ++t) total += mask[t] != 0 ? old_logprobs[t] - rollout_logprobs[t] : 0.0;
  std::vector<double> out(mask.size());
  for (std::size_t t = 0; t < mask.size(); ++t) {
    if (mask[t] == 0) continue;
    const double w = numerics::exp(clamped_log_ratio(by_sequence ? total : old_logprobs[t] - rollout_logprobs[t]));
    out[t] = masks ? (w < settings.low || w > settings.high ? 0.0 : w) : std::min(w, settings.high);
  }
  return out;
}

}  // namespace troupe::models::rl
