#pragma once

#include <cstdint>
#include <string>

#include "jobs/config/common_config.hpp"

namespace troupe::jobs {

/// A GRPO run. Fields are named after their keys, which are verl's where verl has them; formulas: arXiv:2402.03300 and its kin.
struct GrpoConfig {
  static constexpr std::string_view kJob = "grpo";

  CommonConfig common;

  std::string task = "arithmetic";

  struct {
    std::uint32_t train_batch_size = 16;
  } data;

  struct {
    std::uint32_t actors = 1;
    std::uint32_t tensor_parallel = 1;
    std::uint32_t batch_max = 64;
    double gpus = 0;
    std::uint32_t n = 8;
    double temperature = 1.0;
    std::uint32_t top_k = 0;
    double top_p = 1.0;
    double min_p = 0.0;
    std::uint32_t max_tokens = 16;
  } rollout;

  struct {
    std::uint32_t data_parallel = 1;
    std::uint32_t tensor_parallel = 1;
    std::uint32_t micro_batch = 32;
    double gpus = 0;
  } learner;

  struct {
    OptimizerConfig optim{.lr = 1e-6, .weight_decay = 0.01};
    double grad_clip = 1.0;
    double clip_ratio_low = 0.2;
    double clip_ratio_high = 0.2;
    double clip_ratio_c = 3.0;
    std::string loss_mode = "vanilla";
    std::string loss_agg_mode = "token-mean";
    double loss_scale_factor = 1.0;
    bool use_kl_loss = false;
    double kl_loss_coef = 0.001;
    std::string kl_loss_type = "low_var_kl";
    double entropy_coeff = 0.0;
    std::uint32_t ppo_epochs = 1;
  } actor;

  struct {
    std::string adv_estimator = "grpo";
    bool norm_adv_by_std_in_grpo = true;
  } algorithm;

  struct {
    std::uint32_t actors = 1;
  } reward;

  struct {
    std::uint32_t size = 200;
    std::uint32_t every = 0;
  } val;

  /// visit(key, field) for every key. Self: GrpoConfig or const GrpoConfig.
  template <class Self, class Visit>
  static void each_key(Self& self, Visit&& visit) {
    CommonConfig::each_key(self.common, visit);
    visit(choice("task", "what the prompts ask and how responses are scored", {"arithmetic"}), self.task);
    visit(whole("data.train_batch_size", "prompts a step", 1, 65536), self.data.train_batch_size);
    visit(whole("rollout.actors", "rollout actors that share a step's prompts", 1, 1024).layout(), self.rollout.actors);
    visit(degree("rollout.tensor_parallel", "shards of each rollout's model").layout(), self.rollout.tensor_parallel);
    visit(whole("rollout.batch_max", "most sequences a rollout computes at once", 1, 65536).layout(), self.rollout.batch_max);
    visit(number("rollout.gpus", "GPUs that each of a rollout's members asks for: a share of one, or whole ones", 0, 64).layout(), self.rollout.gpus);
    visit(whole("rollout.n", "responses a prompt", 1, 65536), self.rollout.n);
    visit(number("rollout.temperature", "of sampling; 0 is greedy", 0, 100), self.rollout.temperature);
    visit(whole("rollout.top_k", "keep the k likeliest tokens; 0: all", 0, 1000000), self.rollout.top_k);
    visit(positive("rollout.top_p", "keep the likeliest tokens that reach this probability", 1), self.rollout.top_p);
    visit(number("rollout.min_p", "keep tokens of at least this share of the likeliest's probability", 0, 1), self.rollout.min_p);
    visit(whole("rollout.max_tokens", "most tokens of a response", 1, 1000000), self.rollout.max_tokens);
    visit(whole("learner.data_parallel", "learners that share a step's sequences", 1, 64).layout(), self.learner.data_parallel);
    visit(degree("learner.tensor_parallel", "shards of each learner's model").layout(), self.learner.tensor_parallel);
    visit(whole("learner.micro_batch", "sequences a learner computes at once", 1, 65536).layout(), self.learner.micro_batch);
    visit(number("learner.gpus", "GPUs that each of the learner's members asks for: a share of one, or whole ones", 0, 64).layout(), self.learner.gpus);
    OptimizerConfig::each_key(self.actor.optim, kOptimKeys, visit);
    visit(positive("actor.grad_clip", "largest norm of the gradient", 1e9), self.actor.grad_clip);
    visit(positive("actor.clip_ratio_low", "lower clip of the policy ratio: 1 - this", 1), self.actor.clip_ratio_low);
    visit(positive("actor.clip_ratio_high", "upper clip of the policy ratio: 1 + this", 1000), self.actor.clip_ratio_high);
    visit(number("actor.clip_ratio_c", "dual clip of negative advantages", 1, 1000), self.actor.clip_ratio_c);
    visit(choice("actor.policy_loss.loss_mode", "the policy's loss", {"vanilla", "gspo", "cispo", "gpg", "sapo", "geo_mean"}), self.actor.loss_mode);
    visit(choice("actor.loss_agg_mode", "how token losses become one", {"token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-sum-norm", "seq-mean-token-mean"}),
          self.actor.loss_agg_mode);
    visit(positive("actor.loss_scale_factor", "divisor of seq-mean-token-sum-norm", 1e9), self.actor.loss_scale_factor);
    visit(boolean("actor.use_kl_loss", "add the KL to the starting model to the loss"), self.actor.use_kl_loss);
    visit(number("actor.kl_loss_coef", "weight of that KL", 0, 1000), self.actor.kl_loss_coef);
    visit(choice("actor.kl_loss_type", "its estimator", {"kl", "abs", "mse", "low_var_kl"}), self.actor.kl_loss_type);
    visit(number("actor.entropy_coeff", "weight of the entropy bonus", 0, 1000), self.actor.entropy_coeff);
    visit(whole("actor.ppo_epochs", "optimiser steps on each batch", 1, 1000), self.actor.ppo_epochs);
    visit(choice("algorithm.adv_estimator", "the advantage", {"grpo", "rloo", "opo", "gpg", "reinforce_plus_plus", "reinforce_plus_plus_baseline", "grpo_passk"}), self.algorithm.adv_estimator);
    visit(boolean("algorithm.norm_adv_by_std_in_grpo", "divide by the group's deviation; false: Dr. GRPO"), self.algorithm.norm_adv_by_std_in_grpo);
    visit(whole("reward.actors", "actors that score responses", 1, 1024).layout(), self.reward.actors);
    visit(whole("val.size", "held-out problems of an evaluation", 1, 1000000), self.val.size);
    visit(whole("val.every", "steps between evaluations; 0: only before and after", 0, 1e9), self.val.every);
  }

  /// What no single key can say. Errors: bad_input naming both keys.
  Result<void> check() const;

 private:
  static constexpr OptimizerKeys kOptimKeys{"actor.optim.lr", "actor.optim.weight_decay", "actor.optim.beta1", "actor.optim.beta2", "actor.optim.eps",
                                            "actor.optim.lr_warmup_steps", "actor.optim.lr_scheduler_type", "actor.optim.min_lr_ratio"};
};

}  // namespace troupe::jobs
