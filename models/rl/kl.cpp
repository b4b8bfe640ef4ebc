#include "models/rl/kl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/numerics/double_math.hpp"

namespace troupe::models::rl {

Result<KlKind> parse_kl_kind(std::string_view name) {
  if (name == "kl" || name == "k1") return KlKind::k1;
  if (name == "abs") return KlKind::abs;
  if (name == "mse" || name == "k2") return KlKind::k2;
  if (name == "low_var_kl" || name == "k3") return KlKind::k3;
  return Error{ErrorCode::bad_input, fmt::format("kl_loss_type: want kl (k1), abs, mse (k2) or low_var_kl (k3), got '{}'", name)};
}

ValueAndSlope kl(KlKind kind, double logprob, double reference) {
  const double delta = logprob - reference;
  switch (kind) {
    case KlKind::k1: return {delta, 1.0};
    case KlKind::abs: return {std::fabs(delta), delta > 0.0 ? 1.0 : (delta < 0.0 ? -1.0 : 0.0)};
    case KlKind::k2: return {0.5 * delta * delta, delta};
    case KlKind::k3: break;
  }
  const double x = std::clamp(-delta, -20.0, 20.0);
  const double e = numerics::exp(x);
  const double value = e - x - 1.0;
  const bool clamped = value > 10.0 || value < -10.0 || x != -delta;
  return {std::clamp(value, -10.0, 10.0), clamped ? 0.0 : 1.0 - e};
}

void AdaptiveKl::update(double kl_mean, std::uint64_t batch) {
  const double error = std::clamp(kl_mean / target - 1.0, -0.2, 0.2);
  coefficient *= 1.0 + error * static_cast<double>(batch) / horizon;
}

}  // namespace troupe::models::rl
