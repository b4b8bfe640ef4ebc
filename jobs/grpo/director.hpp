#pragma once

#include <string>
#include <vector>

#include "actors/actor.hpp"
#include "actors/pool.hpp"
#include "jobs/grpo/messages.hpp"
#include "jobs/tasks/task.hpp"

namespace troupe::jobs::grpo {

/// Drives the run: a coroutine spans one step and then sends itself the next, so that between steps every actor is quiescent.
/// Work is cut into contiguous pieces by prompt; answers come together in the order of the prompts, whoever gave them.
class Director {
 public:
  Task<> start(Context& context, const Start& message);
  Task<> step(Context& context, const Step& message);
  Task<> stop(Context& context, const Stop& message);
  static void handlers(Handlers<Director>& on) { on.message<&Director::start>().message<&Director::step>().message<&Director::stop>(); }
  TROUPE_FIELDS(state_, saved_, is_finished_)

 private:
  /// A step's prompts with their answers, and what came of them.
  struct Round {
    std::vector<Problem> problems;
    std::vector<Prompt> prompts;
    std::vector<Sample> samples;   ///< prompt-major
    std::vector<double> rewards;   ///< by sample
    std::uint32_t samples_per_prompt = 1;
  };

  void begin(Context& context);
  Task<Result<>> run_step(Context& context, std::uint64_t number);
  Task<Result<double>> evaluate(Context& context);
  Task<Result<>> save(Context& context);
  /// Samples and scores all of the round's problems with the weights that the rollouts have.
  Task<Result<>> generate(Context& context, Round& round, std::uint64_t first_draw, bool greedy);
  Task<Result<>> score(Context& context, Round& round);
  Task<Result<>> update_weights(Context& context);
  void finish(const Result<>& result, bool is_done);

  std::vector<ActorRef> rollouts_, rewards_;
  ActorRef learner_, weights_source_;
  DirectorState state_;
  std::uint64_t saved_ = ~std::uint64_t{0};  ///< the step of the last checkpoint
  bool is_finished_ = false;
  std::string digest_;                       ///< of the last weights
  std::map<std::string, double> metrics_;    ///< of the last step
};

}  // namespace troupe::jobs::grpo
