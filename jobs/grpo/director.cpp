#include "jobs/grpo/director.hpp"

#include "jobs/grpo/environment.hpp"
#include "jobs/grpo/statistics.hpp"
#include "models/rl/advantages.hpp"
#include "transport/collectives/communicator.hpp"

namespace troupe::jobs::grpo {
namespace {

void phase_ended(std::string_view phase) {
  if (environment().phase_ended) environment().phase_ended(phase);
}

models::rl::AdvantageSettings advantage_settings(const GrpoConfig& config) {
  return {.adv_estimator = config.algorithm.adv_estimator, .norm_adv_by_std_in_grpo = config.algorithm.norm_adv_by_std_in_grpo};
}

/// The text that is scored: what was generated, without the end token.
std::string text_of(const Sample& sample) {
  const Result<std::string> text = environment().tokenizer.decode(sample.tokens, true);
  return text ? *text : std::string();
}

}  // namespace

void Director::begin(Context& context) {
  const Environment& here = environment();
  for (std::uint32_t i = 0; i < here.config.rollout.actors; ++i) rollouts_.push_back(context.ref("rollout/" + std::to_string(i)));
  for (std::uint32_t i = 0; i < here.config.reward.actors; ++i) rewards_.push_back(context.ref("reward/" + std::to_string(i)));
  learner_ = context.ref("learner");
  weights_source_ = context.ref("learner/0");
  if (here.start) state_ = here.start->director, saved_ = state_.step;
}

Task<> Director::start(Context& context, const Start& message) {
  begin(context);
  Result<> result;
  if (message.is_fresh) result = co_await save(context);
  if (result && state_.accuracy_before < 0) {
    const Result<double> accuracy = co_await evaluate(context);
    if (accuracy) state_.accuracy_before = *accuracy;
    else result = accuracy.error();
  }
  const std::uint64_t next = state_.step + 1;
  if (!result) finish(result, false);
  else context.tell<Step>(context.self(), next);
}

Task<> Director::step(Context& context, const Step& message) {
  if (is_finished_) co_return;
  if (rollouts_.empty()) begin(context);  // a re-execution that begins with this step
  context.begin_step(message.number);
  const GrpoConfig& config = environment().config;
  Result<> result = co_await run_step(context, message.number);
  const bool is_last = message.number == config.common.steps;
  if (result && (is_last || (config.val.every > 0 && message.number % config.val.every == 0))) {
    const Result<double> accuracy = co_await evaluate(context);
    if (accuracy) {
      metrics_["val-core/" + config.task + "/acc"] = *accuracy;
      state_.accuracy_after = *accuracy;
      phase_ended("testing");
    } else {
      result = accuracy.error();
    }
  }
  // Reported before the checkpoint: a run that is killed between the two goes on from the one before, and reports the step again.
  if (result && environment().report) environment().report(message.number, metrics_);
  if (result) {
    const std::uint32_t every = config.common.checkpoint_every;
    const bool is_due = is_last || (every > 0 && message.number % every == 0);
    if (is_due) {
      result = co_await save(context);
      phase_ended("save_checkpoint");
    }
  }
  const std::uint64_t next = message.number + 1;
  if (!result || is_last) finish(result, result.has_value());
  else context.tell<Step>(context.self(), next);
}

Task<> Director::stop(Context& context, const Stop&) {
  if (is_finished_) co_return;
  Result<> result;
  if (saved_ != state_.step) result = co_await save(context);
  finish(result, false);
}

Task<Result<>> Director::run_step(Context& context, std::uint64_t number) {
  const GrpoConfig& config = environment().config;
  metrics_.clear();
  Round round{.samples_per_prompt = config.rollout.n};
  const std::uint64_t first_draw = (number - 1) * config.data.train_batch_size;
  for (std::uint32_t i = 0; i < config.data.train_batch_size; ++i) round.problems.push_back(training_problem(config.task, config.common.seed, first_draw + i));
  Result<> done = co_await generate(context, round, first_draw, false);
  if (!done) co_return done.error();
  phase_ended("gen");
  done = co_await score(context, round);
  if (!done) co_return done.error();
  phase_ended("reward");

  std::vector<models::rl::Response> responses;
  for (std::size_t i = 0; i < round.samples.size(); ++i) {
    const std::size_t length = round.samples[i].tokens.size();
    models::rl::Response response{.group = i / round.samples_per_prompt, .rewards = std::vector<double>(length, 0.0), .mask = std::vector<std::uint8_t>(length, 1)};
    response.rewards.back() = round.rewards[i];
    responses.push_back(std::move(response));
  }
  const Result<models::rl::Advantages> advantages = models::rl::advantages(responses, advantage_settings(config));
  if (!advantages) co_return advantages.error();
  phase_ended("adv");

  Train train{.step = number};
  for (std::size_t i = 0; i < round.samples.size(); ++i) {
    train.sequences.push_back({.prompt = round.prompts[i / round.samples_per_prompt].tokens, .response = round.samples[i].tokens,
                               .rollout_logprobs = round.samples[i].logprobs, .advantages = advantages->advantages[i]});
  }
  add_statistics(metrics_, "critic/score", round.rewards);
  add_statistics(metrics_, "critic/rewards", round.rewards);
  add_sequence_statistics(metrics_, train.sequences, round.samples);
  const Result<Trained> trained = co_await context.ask<Train>(learner_, std::move(train));
  if (!trained) co_return trained.error();
  phase_ended("update_actor");
  for (const auto& [name, value] : trained->metrics) metrics_[name] = value;
  metrics_["training/global_step"] = static_cast<double>(number);
  const double diff = metrics_["training/rollout_probs_diff_max"];
  if (diff > state_.probs_diff_max) state_.probs_diff_max = diff;
  digest_ = trained->digest;
  state_.step = number;
  done = co_await update_weights(context);
  if (!done) co_return done.error();
  phase_ended("update_weights");
  co_return Result<>{};
}

Task<Result<>> Director::generate(Context& context, Round& round, std::uint64_t first_draw, bool greedy) {
  for (std::size_t i = 0; i < round.problems.size(); ++i) {
    round.prompts.push_back({.draw = first_draw + i, .tokens = environment().tokenizer.encode(round.problems[i].prompt)});
  }
  std::vector<Ask<Generated>> pieces;
  const auto rollouts = static_cast<std::uint32_t>(rollouts_.size());
  for (std::uint32_t i = 0; i < rollouts; ++i) {
    const auto [first, last] = collectives::piece_of(round.prompts.size(), i, rollouts);
    if (first == last) continue;
    Generate piece{.version = state_.step, .samples = round.samples_per_prompt, .greedy = greedy};
    piece.prompts.assign(round.prompts.begin() + static_cast<std::ptrdiff_t>(first), round.prompts.begin() + static_cast<std::ptrdiff_t>(last));
    pieces.push_back(context.ask<Generate>(rollouts_[i], std::move(piece)));
  }
  Result<> result;
  for (Ask<Generated>& piece : pieces) {
    Result<Generated> generated = co_await piece;
    if (!generated) result = generated.error();
    else round.samples.insert(round.samples.end(), std::make_move_iterator(generated->samples.begin()), std::make_move_iterator(generated->samples.end()));
  }
  co_return result;
}

Task<Result<>> Director::score(Context& context, Round& round) {
  std::vector<Ask<Scored>> pieces;
  const auto actors = static_cast<std::uint32_t>(rewards_.size());
  for (std::uint32_t i = 0; i < actors; ++i) {
    const auto [first, last] = collectives::piece_of(round.samples.size(), i, actors);
    if (first == last) continue;
    Score piece;
    for (std::size_t at = first; at < last; ++at) {
      const Problem& problem = round.problems[at / round.samples_per_prompt];
      piece.attempts.push_back({.prompt = problem.prompt, .answer = problem.answer, .response = text_of(round.samples[at])});
    }
    pieces.push_back(context.ask<Score>(rewards_[i], std::move(piece)));
  }
  Result<> result;
  for (Ask<Scored>& piece : pieces) {
    const Result<Scored> scored = co_await piece;
    if (!scored) result = scored.error();
    else round.rewards.insert(round.rewards.end(), scored->rewards.begin(), scored->rewards.end());
  }
  co_return result;
}

Task<Result<double>> Director::evaluate(Context& context) {
  const GrpoConfig& config = environment().config;
  Round round;
  for (std::uint32_t i = 0; i < config.val.size; ++i) round.problems.push_back(held_out_problem(config.task, i));
  Result<> done = co_await generate(context, round, 0, true);
  if (!done) co_return done.error();
  done = co_await score(context, round);
  if (!done) co_return done.error();
  co_return mean(round.rewards);
}

Task<Result<>> Director::update_weights(Context& context) {
  std::vector<Ask<Fetched>> asks;
  for (const ActorRef rollout : rollouts_) asks.push_back(context.ask<FetchWeights>(rollout, state_.step, weights_source_));
  Result<> result;
  for (Ask<Fetched>& ask : asks) {
    const Result<Fetched> fetched = co_await ask;
    if (!fetched) {
      result = fetched.error();
    } else if (fetched->digest != digest_) {
      result = Error{ErrorCode::corrupt, "weights of step " + std::to_string(state_.step) + ": want digest " + digest_ + ", got " + fetched->digest + " at a rollout"};
    }
  }
  co_return result;
}

Task<Result<>> Director::save(Context& context) {
  const Result<Saved> saved = co_await context.ask<SaveCheckpoint>(learner_, state_);
  if (!saved) co_return saved.error();
  saved_ = state_.step;
  co_return Result<>{};
}

void Director::finish(const Result<>& result, bool is_done) {
  is_finished_ = true;
  if (!environment().finish) return;
  environment().finish({.error = result ? Error{ErrorCode::ok, {}} : result.error(), .is_done = is_done, .director = state_, .digest = digest_, .metrics = metrics_});
}

}  // namespace troupe::jobs::grpo
