#include "jobs/grpo/rollout.hpp"

#include "jobs/grpo/environment.hpp"
#include "models/weights.hpp"

namespace troupe::jobs::grpo {
namespace {

models::Sampling sampling(const GrpoConfig& config, bool greedy) {
  models::Sampling sampling{.temperature = static_cast<float>(config.rollout.temperature),
                            .top_k = config.rollout.top_k,
                            .top_p = static_cast<float>(config.rollout.top_p),
                            .min_p = static_cast<float>(config.rollout.min_p),
                            .seed = config.common.seed};
  if (greedy) sampling = {.temperature = 0.0F, .seed = config.common.seed};
  return sampling;
}

}  // namespace

Result<void> Rollout::begin() {
  if (is_open_) return {};
  Result<void> opened = open();
  if (opened) is_open_ = true;
  else scheduler::abandon_gang(place_, opened.error());
  return opened;
}

Result<void> Rollout::open() {
  if (Result<void> placed = scheduler::take_place(place_); !placed) return placed.error();
  const Environment& here = environment();
  pool_ = std::make_unique<models::ThreadPool>(here.threads);
  if (place_.size() > 1) {
    Result<std::unique_ptr<collectives::Communicator>> opened = scheduler::open_communicator(place_);
    if (!opened) return opened.error();
    communicator_ = std::move(*opened);
  }
  const models::Weights& weights = here.start ? here.start->trainer.weights : *here.start_weights;
  Result<std::unique_ptr<models::Model>> model = communicator_ ? models::Model::create(here.model, weights, *pool_, *communicator_)
                                                               : models::Model::create(here.model, weights, *pool_);
  if (!model) return model.error();
  model_ = std::move(*model);
  if (Result<void> updated = model_->update(weights, here.start ? here.start->step : 0); !updated) return updated.error();
  engine_ = std::make_unique<models::Engine>(*model_, models::EngineOptions{.batch_max = here.config.rollout.batch_max});
  return {};
}

Result<Generated> Rollout::generate(Context& context, const Generate& message) {
  if (Result<void> begun = begin(); !begun) return begun.error();
  if (model_->version() != message.version) {
    return Error{ErrorCode::bad_input, "weights: want version " + std::to_string(message.version) + ", got " + std::to_string(model_->version())};
  }
  const GrpoConfig& config = environment().config;
  std::vector<models::Request> requests;
  for (const Prompt& prompt : message.prompts) {
    requests.push_back({.prompt = prompt.tokens, .draw = prompt.draw, .n = message.samples, .max_tokens = config.rollout.max_tokens,
                        .sampling = sampling(config, message.greedy)});
  }
  // Every decode step's logits are noted, so that a replay is checked at every token.
  Digester logits;
  const auto on_step = [&](std::span<const models::StepLogits> step) {
    logits = Digester();
    std::uint64_t bytes = 0;
    for (const models::StepLogits& each : step) {
      const std::uint64_t words[] = {each.draw, std::uint64_t{each.sample} << 32 | each.position, each.digest};
      logits.add(std::as_bytes(std::span(words)));
      bytes += sizeof(words);
    }
    context.note_digest("logits", {.whole = logits.digest().low, .bytes = bytes});
  };
  Result<std::vector<models::Completion>> completions = engine_->generate(requests, on_step);
  if (!completions) return completions.error();
  Generated generated;
  for (models::Completion& each : *completions) {
    generated.samples.push_back({.draw = message.prompts[each.prompt].draw, .index = each.sample, .tokens = std::move(each.tokens),
                                 .logprobs = std::move(each.logprobs), .stopped = each.reason == models::FinishReason::stop});
  }
  return generated;
}

// The bytes come from the learner itself; the digest is recomputed here, so what the rollout computes with is what was trained.
Task<Result<Fetched>> Rollout::fetch(Context& context, const FetchWeights& message) {
  if (Result<void> begun = begin(); !begun) co_return begun.error();
  const Result<std::shared_ptr<const PublishedWeights>> read = co_await context.ask<ReadWeights>(message.source, message.version);
  if (!read) co_return read.error();
  const PublishedWeights& published = **read;
  const std::string digest = models::weights_digest(published.weights, environment().threads).hex();
  if (digest != published.digest) {
    co_return Error{ErrorCode::corrupt, "weights of version " + std::to_string(published.version) + ": want digest " + published.digest + ", got " + digest};
  }
  if (Result<void> updated = model_->update(published.weights, published.version); !updated) co_return updated.error();
  co_return Fetched{.version = published.version, .digest = digest};
}

}  // namespace troupe::jobs::grpo
