#pragma once

#include "jobs/config/common_config.hpp"
#include "models/training/optimizer_settings.hpp"

namespace troupe::jobs {

/// A job's keys as the trainer takes them; total_steps is what cosine ends at.
inline models::OptimizerSettings optimizer_settings(const OptimizerConfig& config, double grad_clip, std::uint64_t total_steps) {
  models::OptimizerSettings settings;
  settings.learning_rate = config.lr;
  settings.beta1 = config.beta1;
  settings.beta2 = config.beta2;
  settings.eps = config.eps;
  settings.weight_decay = config.weight_decay;
  settings.grad_clip = grad_clip;
  settings.warmup_steps = config.lr_warmup_steps;
  settings.schedule = config.lr_scheduler_type;
  settings.total_steps = total_steps;
  settings.min_lr_ratio = config.min_lr_ratio;
  return settings;
}

}  // namespace troupe::jobs
