#include "models/training/optimizer_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numbers>

#include "models/numerics/double_math.hpp"

namespace troupe::models {

Result<void> check_settings(const OptimizerSettings& settings) {
  const auto refuse = [](std::string_view key, std::string_view wanted, auto got) {
    return Error{ErrorCode::bad_input, fmt::format("optimizer.{}: want {}, got {}", key, wanted, got)};
  };
  if (!(settings.learning_rate >= 0.0)) return refuse("learning_rate", "at least 0", settings.learning_rate);
  if (!(settings.beta1 >= 0.0 && settings.beta1 < 1.0)) return refuse("beta1", "in [0, 1)", settings.beta1);
  if (!(settings.beta2 >= 0.0 && settings.beta2 < 1.0)) return refuse("beta2", "in [0, 1)", settings.beta2);
  if (!(settings.eps > 0.0)) return refuse("eps", "above 0", settings.eps);
  if (!(settings.weight_decay >= 0.0)) return refuse("weight_decay", "at least 0", settings.weight_decay);
  if (!(settings.grad_clip >= 0.0)) return refuse("grad_clip", "at least 0", settings.grad_clip);
  if (!(settings.min_lr_ratio >= 0.0 && settings.min_lr_ratio <= 1.0)) return refuse("min_lr_ratio", "in [0, 1]", settings.min_lr_ratio);
  if (settings.schedule != "constant" && settings.schedule != "cosine") return refuse("schedule", "constant or cosine", settings.schedule);
  if (settings.schedule == "cosine" && settings.total_steps <= settings.warmup_steps) {
    return refuse("total_steps", fmt::format("more than warmup_steps {}", settings.warmup_steps), settings.total_steps);
  }
  return {};
}

double learning_rate(const OptimizerSettings& settings, std::uint64_t step) {
  if (step < settings.warmup_steps) return settings.learning_rate * (static_cast<double>(step) / settings.warmup_steps);
  if (settings.schedule != "cosine") return settings.learning_rate;
  const double progress = std::min(1.0, static_cast<double>(step - settings.warmup_steps) / static_cast<double>(settings.total_steps - settings.warmup_steps));
  const double wave = 0.5 * (1.0 + numerics::cos(std::numbers::pi * progress));
  return settings.learning_rate * (settings.min_lr_ratio + (1.0 - settings.min_lr_ratio) * wave);
}

AdamW adamw_step(const OptimizerSettings& settings, std::uint64_t step, double gradient_norm) {
  AdamW out;
  out.learning_rate = learning_rate(settings, step);
  out.beta1 = settings.beta1;
  out.beta2 = settings.beta2;
  out.eps = settings.eps;
  out.weight_decay = settings.weight_decay;
  out.correction1 = 1.0 - numerics::pow(settings.beta1, static_cast<double>(step));
  out.correction2 = 1.0 - numerics::pow(settings.beta2, static_cast<double>(step));
  if (settings.grad_clip > 0.0) out.gradient_scale = std::min(1.0, settings.grad_clip / (gradient_norm + 1e-6));
  return out;
}

}  // namespace troupe::models
