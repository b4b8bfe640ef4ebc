#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "jobs/config/common_config.hpp"

namespace troupe::jobs {

/// Supervised training from a folder (model.path) or from scratch (model.init.*).
struct SftConfig {
  static constexpr std::string_view kJob = "sft";

  CommonConfig common;
  std::filesystem::path output;

  struct {
    std::string family = "llama";
    std::uint32_t hidden_size = 64;
    std::uint32_t layers = 2;
    std::uint32_t heads = 8;
    std::uint32_t kv_heads = 4;
    std::uint32_t head_dim = 0;
    std::uint32_t intermediate_size = 192;
    std::uint32_t positions_max = 256;
    double rope_theta = 10000;
    double rms_norm_eps = 1e-6;
    double initializer_range = 0.02;
    bool tied_embeddings = false;
  } init;

  struct {
    std::filesystem::path path;
    std::uint32_t train_batch_size = 32;
    std::uint32_t max_length = 256;
  } data;

  struct {
    std::uint32_t micro_batch = 32;
  } learner;

  OptimizerConfig optim;
  double clip_grad = 1.0;

  template <class Self, class Visit>
  static void each_key(Self& self, Visit&& visit) {
    CommonConfig::each_key(self.common, visit);
    visit(path("output", "folder for the trained model; empty: RUN/model"), self.output);
    visit(choice("model.init.family", "without model.path: the architecture", {"llama", "qwen2", "qwen3"}), self.init.family);
    visit(whole("model.init.hidden_size", "width", 8, 1 << 20), self.init.hidden_size);
    visit(whole("model.init.layers", "decoder layers", 1, 4096), self.init.layers);
    visit(whole("model.init.heads", "query heads", 1, 4096), self.init.heads);
    visit(whole("model.init.kv_heads", "key and value heads; divides heads", 1, 4096), self.init.kv_heads);
    visit(whole("model.init.head_dim", "width of a head, even; 0: hidden_size / heads", 0, 4096), self.init.head_dim);
    visit(whole("model.init.intermediate_size", "width of the MLP", 8, 1 << 22), self.init.intermediate_size);
    visit(whole("model.init.positions_max", "longest sequence", 8, 1 << 24), self.init.positions_max);
    visit(positive("model.init.rope_theta", "base of the rotary frequencies", 1e12), self.init.rope_theta);
    visit(positive("model.init.rms_norm_eps", "epsilon of the norms", 1), self.init.rms_norm_eps);
    visit(positive("model.init.initializer_range", "deviation of the first weights", 10), self.init.initializer_range);
    visit(boolean("model.init.tied_embeddings", "one matrix for input and output"), self.init.tied_embeddings);
    visit(path("data.path", "JSONL of {\"prompt\", \"response\"} or {\"text\"}").required(), self.data.path);
    visit(whole("data.train_batch_size", "examples a step", 1, 65536), self.data.train_batch_size);
    visit(whole("data.max_length", "most tokens of an example; texts are packed into examples of this length", 2, 1 << 24), self.data.max_length);
    visit(whole("learner.micro_batch", "examples computed at once", 1, 65536).layout(), self.learner.micro_batch);
    OptimizerConfig::each_key(self.optim, kOptimKeys, visit);
    visit(positive("optim.clip_grad", "largest norm of the gradient", 1e9), self.clip_grad);
  }

  /// What no single key can say. Errors: bad_input naming both keys.
  Result<void> check() const;

 private:
  static constexpr OptimizerKeys kOptimKeys{"optim.lr", "optim.weight_decay", "optim.beta1", "optim.beta2", "optim.eps", "optim.lr_warmup_steps",
                                            "optim.lr_scheduler_type", "optim.min_lr_ratio"};
};

}  // namespace troupe::jobs
