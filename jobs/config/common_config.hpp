#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "actors/base/error.hpp"
#include "jobs/config/key.hpp"

namespace troupe::jobs {

/// What every job has.
struct CommonConfig {
  std::string job;
  std::uint64_t seed = 1;
  std::uint32_t steps = 100;
  std::uint32_t threads = 0;
  std::string simd = "auto";
  std::filesystem::path model_path;  ///< absolute; empty when not given
  std::string record_level = "order";
  std::uint32_t checkpoint_every = 10;
  std::uint32_t checkpoint_keep = 3;

  template <class Self, class Visit>
  static void each_key(Self& self, Visit&& visit) {
    visit(choice("job", "what the file describes", {"grpo", "sft"}).required(), self.job);
    visit(whole("seed", "of all random draws", 0, 9007199254740992.0), self.seed);
    visit(whole("steps", "optimiser steps of the run", 1, 1e9), self.steps);
    visit(whole("threads", "compute threads of each rank; 0: its share of the cores there are", 0, 1024).layout(), self.threads);
    visit(choice("simd", "instruction set of the kernels", {"auto", "avx2", "avx512"}).layout(), self.simd);
    visit(path("model.path", "the model to start from: a Hugging Face folder"), self.model_path);
    visit(choice("record.level", "what is recorded for replay", {"off", "order", "full"}).layout(), self.record_level);
    visit(whole("checkpoint.every", "steps between checkpoints; 0: only the first and the last", 0, 1e9).layout(), self.checkpoint_every);
    visit(whole("checkpoint.keep", "latest checkpoints to keep; 0: all", 0, 1e9).layout(), self.checkpoint_keep);
  }
};

/// How a job calls the keys of its OptimizerConfig.
struct OptimizerKeys {
  std::string_view lr, weight_decay, beta1, beta2, eps, lr_warmup_steps, lr_scheduler_type, min_lr_ratio;
};

/// AdamW, and its learning rate over the steps.
struct OptimizerConfig {
  double lr = 1e-3;
  double weight_decay = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  std::uint32_t lr_warmup_steps = 0;
  std::string lr_scheduler_type = "constant";
  double min_lr_ratio = 0.0;

  template <class Self, class Visit>
  static void each_key(Self& self, const OptimizerKeys& keys, Visit&& visit) {
    visit(number(keys.lr, "learning rate after warm-up", 0, 1000), self.lr);
    visit(number(keys.weight_decay, "decoupled weight decay", 0, 1000), self.weight_decay);
    visit(number(keys.beta1, "AdamW's decay of the gradient's mean", 0, 0.999999), self.beta1);
    visit(number(keys.beta2, "AdamW's decay of its square's mean", 0, 0.99999999), self.beta2);
    visit(positive(keys.eps, "AdamW's epsilon", 1), self.eps);
    visit(whole(keys.lr_warmup_steps, "steps of linear warm-up", 0, 1e9), self.lr_warmup_steps);
    visit(choice(keys.lr_scheduler_type, "learning rate after warm-up", {"constant", "cosine"}), self.lr_scheduler_type);
    visit(number(keys.min_lr_ratio, "where cosine ends, as a share of lr", 0, 1), self.min_lr_ratio);
  }
};

}  // namespace troupe::jobs
