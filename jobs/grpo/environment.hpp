#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "actors/base/value.hpp"
#include "jobs/config/grpo_config.hpp"
#include "jobs/grpo/messages.hpp"
#include "models/config.hpp"
#include "models/tokenizer.hpp"
#include "models/training/trainer.hpp"

namespace troupe::jobs::grpo {

/// What a checkpoint holds, whole and without a layout.
struct Checkpoint {
  std::uint64_t step = 0;
  DirectorState director;
  models::TrainerState trainer;
  TROUPE_FIELDS(step, director, trainer)
};

/// How a run ended.
struct Outcome {
  Error error;           ///< ok: done or stopped
  bool is_done = false;  ///< all steps; false: stopped, or failed
  DirectorState director;
  std::string digest;    ///< of the last weights
  std::map<std::string, double> metrics;
};

/// What the actors of this process share: the job's settings, where it starts, and the ways out. Nothing of it enters a message or a state.
/// A replay leaves the ways out empty.
struct Environment {
  GrpoConfig config;
  models::ModelConfig model;
  models::Tokenizer tokenizer = models::Tokenizer::bytes();
  std::shared_ptr<const models::Weights> start_weights;   ///< the model that the run began with: the KL's reference
  std::shared_ptr<const Checkpoint> start;                ///< null: fresh
  std::uint32_t threads = 1;                              ///< of each member
  std::function<void(std::uint64_t step, const std::map<std::string, double>& metrics)> report;
  std::function<void(std::string_view phase)> phase_ended;  ///< "gen", "reward", "update_actor", …: for timing_s
  std::function<Result<void>(std::uint64_t step, const Checkpoint& checkpoint)> write_checkpoint;
  std::function<void(const Outcome&)> finish;
};

/// The one of this process. install replaces it between runs, while no actor runs.
const Environment& environment();
void install(Environment environment);

}  // namespace troupe::jobs::grpo
