#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/actor_ref.hpp"
#include "actors/base/bytes.hpp"
#include "actors/base/fields.hpp"
#include "models/tensor.hpp"
#include "models/tokenizer.hpp"

// What the actors of a GRPO run say to each other. No field names a rank, a thread or a batch, so the content of every message is the
// same in any layout but for the pieces into which the director cuts a step's prompts among rollouts and reward actors.
namespace troupe::jobs::grpo {

using models::TokenId;

/// One prompt of a step. `draw` is the global draw counter (step × prompts + index) that keys its random numbers.
struct Prompt {
  std::uint64_t draw = 0;
  std::vector<TokenId> tokens;
  TROUPE_FIELDS(draw, tokens)
};

/// One response: generated tokens (the end token with them) and the log-probability of each under the rollout's weights.
struct Sample {
  std::uint64_t draw = 0;
  std::uint32_t index = 0;  ///< within the prompt's group
  std::vector<TokenId> tokens;
  std::vector<float> logprobs;
  bool stopped = false;     ///< by an end token, not by the length limit
  TROUPE_FIELDS(draw, index, tokens, logprobs, stopped)
};

struct Generated {
  std::vector<Sample> samples;  ///< prompt-major, in the order of the request
  TROUPE_FIELDS(samples)
};

/// To a rollout: sample every prompt `samples` times with the weights of `version`.
struct Generate {
  using Reply = Generated;
  std::uint64_t version = 0;
  std::uint32_t samples = 1;
  bool greedy = false;  ///< temperature 0, for evaluation; else the job's sampling
  std::vector<Prompt> prompts;
  TROUPE_FIELDS(version, samples, greedy, prompts)
};

/// Whole weights with their digest, as they go from the learner to a rollout.
struct PublishedWeights {
  std::uint64_t version = 0;
  std::string digest;  ///< 32 hex digits
  models::Weights weights;
  TROUPE_FIELDS(version, digest, weights)
};

/// To member 0 of the learner, from a rollout's member.
struct ReadWeights {
  using Reply = std::shared_ptr<const PublishedWeights>;
  std::uint64_t version = 0;
  TROUPE_FIELDS(version)
};

struct Fetched {
  std::uint64_t version = 0;
  std::string digest;  ///< recomputed from what arrived
  TROUPE_FIELDS(version, digest)
};

/// To a rollout: take the weights of `version` from `source`.
struct FetchWeights {
  using Reply = Fetched;
  std::uint64_t version = 0;
  ActorRef source;
  TROUPE_FIELDS(version, source)
};

/// A response beside the answer that its prompt wants.
struct Attempt {
  std::string prompt;
  std::string answer;
  std::string response;
  TROUPE_FIELDS(prompt, answer, response)
};
struct Scored {
  std::vector<double> rewards;  ///< in the order of the attempts
  TROUPE_FIELDS(rewards)
};
/// To a reward actor.
struct Score {
  using Reply = Scored;
  std::vector<Attempt> attempts;
  TROUPE_FIELDS(attempts)
};

/// A prompt with its response, as the learner trains on it. The order of sequences in Train is the global order of the gradient's tree.
struct Sequence {
  std::vector<TokenId> prompt;
  std::vector<TokenId> response;
  std::vector<float> rollout_logprobs;
  std::vector<double> advantages;
  TROUPE_FIELDS(prompt, response, rollout_logprobs, advantages)
};

struct Trained {
  std::uint64_t version = 0;
  std::string digest;                     ///< of the new weights
  std::map<std::string, double> metrics;  ///< under their usual names (actor/…, training/…)
  TROUPE_FIELDS(version, digest, metrics)
};

/// To the learner: the optimiser steps of one batch.
struct Train {
  using Reply = Trained;
  std::uint64_t step = 0;  ///< from 1
  std::vector<Sequence> sequences;
  TROUPE_FIELDS(step, sequences)
};

struct Saved {
  std::uint64_t step = 0;
  std::string digest;  ///< of the checkpoint's content
  TROUPE_FIELDS(step, digest)
};

/// All of the director that a resume needs.
struct DirectorState {
  std::uint64_t step = 0;       ///< done
  double accuracy_before = -1;  ///< held-out, greedy; −1: not measured yet
  double accuracy_after = -1;
  double probs_diff_max = 0;    ///< rollout against trainer, of the whole run
  TROUPE_FIELDS(step, accuracy_before, accuracy_after, probs_diff_max)
};

/// To the learner: write the checkpoint of `director.step`.
struct SaveCheckpoint {
  using Reply = Saved;
  DirectorState director;
  TROUPE_FIELDS(director)
};

/// To the director, from outside: begin.
struct Start {
  bool is_fresh = true;  ///< false: from a checkpoint
  TROUPE_FIELDS(is_fresh)
};
/// To the director, from outside: end after this step with a checkpoint.
struct Stop {
  TROUPE_NO_FIELDS()
};
/// To the director, from itself: run this step.
struct Step {
  std::uint64_t number = 0;  ///< from 1
  TROUPE_FIELDS(number)
};

}  // namespace troupe::jobs::grpo
