#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "actors/actor_ref.hpp"
#include "actors/base/digest.hpp"
#include "actors/base/fields.hpp"

// What the actors of a GRPO run say to each other. No field names a rank, a thread or a batch, so the content of every message is the
// same in any layout; the director divides work among rollouts by prompt.
namespace troupe::jobs::grpo {

/// One prompt of a step. `draw` is the global draw counter (step × prompts + index) that keys its random numbers.
struct Prompt {
  std::uint64_t draw = 0;
  std::vector<std::int32_t> token_ids;
  TROUPE_FIELDS(draw, token_ids)
};

/// One response: generated tokens (the end token with them) and the log-probability of each under the rollout's weights.
struct Sample {
  std::uint64_t draw = 0;
  std::uint32_t index = 0;  ///< within the prompt's group
  std::vector<std::int32_t> token_ids;
  std::vector<float> logprobs;
  bool stopped = false;  ///< by an end token, not by the length limit
  TROUPE_FIELDS(draw, index, token_ids, logprobs, stopped)
};

struct Generated {
  std::vector<Sample> samples;  ///< prompt-major, in the order of the request
  TROUPE_FIELDS(samples)
};

/// To a rollout: sample every prompt `samples_per_prompt` times with the weights of `version`.
struct Generate {
  using Reply = Generated;
  std::uint64_t version = 0;
  std::uint32_t samples_per_prompt = 1;
  bool greedy = false;  ///< temperature 0, for evaluation; else the job's sampling parameters
  std::vector<Prompt> prompts;
  TROUPE_FIELDS(version, samples_per_prompt, greedy, prompts)
};

/// Weights as they go from the learner to a rollout: whole tensors by Hugging Face name.
struct Weights {
  std::uint64_t version = 0;
  std::string digest;  ///< the weights' digest, 32 hex digits
  std::map<std::string, std::vector<float>> tensors;
  TROUPE_FIELDS(version, digest, tensors)
};

/// To member 0 of the learner, from a rollout.
struct ReadWeights {
  using Reply = std::shared_ptr<const Weights>;
  std::uint64_t version = 0;
  TROUPE_FIELDS(version)
};

struct Fetched {
  std::uint64_t version = 0;
  std::string digest;  ///< recomputed by the rollout from what arrived
  TROUPE_FIELDS(version, digest)
};

/// To a rollout: take the weights of `version` from the learner.
struct FetchWeights {
  using Reply = Fetched;
  std::uint64_t version = 0;
  actors::ActorRef source;
  TROUPE_FIELDS(version, source)
};

/// To a reward actor: a response beside the answer that its prompt wants.
struct Attempt {
  std::string prompt;
  std::string answer;
  std::string response;
  TROUPE_FIELDS(prompt, answer, response)
};
struct Score {
  using Reply = std::vector<double>;
  std::vector<Attempt> attempts;
  TROUPE_FIELDS(attempts)
};

/// A prompt with its response, as the learner trains on it. The order of sequences in Train is the global order of the gradient's tree.
struct Sequence {
  std::vector<std::int32_t> prompt;
  std::vector<std::int32_t> response;
  std::vector<float> rollout_logprobs;
  double advantage = 0;
  TROUPE_FIELDS(prompt, response, rollout_logprobs, advantage)
};

struct Trained {
  std::uint64_t version = 0;
  std::string digest;
  std::map<std::string, double> metrics;  ///< under their usual names (actor/…, training/…)
  TROUPE_FIELDS(version, digest, metrics)
};

/// To the learner: one optimiser step on the batch.
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

/// To the learner: write the checkpoint of `step`, with the director's own state as encode() wrote it.
struct SaveCheckpoint {
  using Reply = Saved;
  std::uint64_t step = 0;
  Bytes director;
  TROUPE_FIELDS(step, director)
};

/// To the director, from outside: begin, at the checkpoint that the run starts from.
struct Start {
  TROUPE_NO_FIELDS()
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
