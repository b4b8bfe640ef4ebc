#pragma once

#include <cstdint>
#include <string_view>

#include "actors/base/error.hpp"
#include "actors/base/fields.hpp"

namespace troupe::models::rl {

/// Estimators of KL(π ‖ π_ref) from one token (Schulman, "Approximating KL divergence").
enum class KlKind : std::uint8_t { k1, abs, k2, k3 };

/// "kl" or "k1", "abs", "mse" or "k2", "low_var_kl" or "k3". Errors: bad_input naming those allowed.
Result<KlKind> parse_kl_kind(std::string_view name);

struct ValueAndSlope {
  double value = 0.0;
  double slope = 0.0;  ///< d value / d logprob; 0 where a clamp holds
};

/// Δ = logprob − reference, x = clamp(−Δ, ±20): Δ; |Δ|; ½Δ²; clamp(eˣ − x − 1, ±10).
ValueAndSlope kl(KlKind kind, double logprob, double reference);

/// The coefficient of KL in the reward, steered towards a target (arXiv:1909.08593, section 2.2).
struct AdaptiveKl {
  double coefficient = 0.001;
  double target = 0.1;
  double horizon = 10000.0;
  TROUPE_FIELDS(coefficient, target, horizon)

  /// coefficient ·= 1 + clip(kl / target − 1, ±0.2) · batch / horizon
  void update(double kl_mean, std::uint64_t batch);
};

}  // namespace troupe::models::rl
