#pragma once

#include <cstdint>
#include <string>

#include "actors/base/error.hpp"
#include "actors/base/fields.hpp"
#include "models/kernels/optimizer.hpp"

namespace troupe::models {

/// AdamW with decoupled decay on every parameter, a clipped global norm, warm-up and a schedule.
struct OptimizerSettings {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  double grad_clip = 1.0;          ///< gradients are scaled by min(1, grad_clip / (norm + 1e-6)); 0: never
  std::uint32_t warmup_steps = 0;
  std::string schedule = "constant";  ///< or "cosine", down to min_lr_ratio at total_steps
  std::uint64_t total_steps = 0;   ///< of cosine
  double min_lr_ratio = 0.0;
  TROUPE_FIELDS(learning_rate, beta1, beta2, eps, weight_decay, grad_clip, warmup_steps, schedule, total_steps, min_lr_ratio)
};

/// Errors: bad_input naming the setting and its range.
Result<void> check_settings(const OptimizerSettings& settings);

/// Of step 1, 2, …: rises as step / warmup_steps, then constant, or ½(1 + cos(π progress)) between 1 and min_lr_ratio with
/// progress = (step − warmup_steps) / (total_steps − warmup_steps), held at 1.
double learning_rate(const OptimizerSettings& settings, std::uint64_t step);

/// What the kernel takes for that step and a gradient of that norm.
AdamW adamw_step(const OptimizerSettings& settings, std::uint64_t step, double gradient_norm);

}  // namespace troupe::models
