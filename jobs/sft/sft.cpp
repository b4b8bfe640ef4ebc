#include <fmt/format.h>

#include <algorithm>

#include "actors/record/run_record.hpp"
#include "jobs/compute.hpp"
#include "jobs/job.hpp"
#include "jobs/launch/stop_signals.hpp"
#include "jobs/model_source.hpp"
#include "jobs/optimizer_settings.hpp"
#include "jobs/report/metrics_file.hpp"
#include "jobs/report/progress.hpp"
#include "jobs/report/tensorboard.hpp"
#include "jobs/report/wall_clock.hpp"
#include "jobs/sft/examples.hpp"
#include "models/numerics/contract.hpp"
#include "models/training/packing.hpp"
#include "models/training/trainer.hpp"
#include "models/weights.hpp"

namespace troupe::jobs {
namespace {

Error refused(std::string detail) { return {ErrorCode::bad_input, std::move(detail)}; }

models::Family family_of(std::string_view name) {
  if (name == "qwen2") return models::Family::qwen2;
  return name == "qwen3" ? models::Family::qwen3 : models::Family::llama;
}

Result<LoadedModel> model_from_scratch(const SftConfig& config) {
  const auto& init = config.init;
  const auto tokenizer = models::Tokenizer::bytes();
  models::ModelConfig model{.family = family_of(init.family), .vocab_size = tokenizer.size(), .hidden_size = init.hidden_size, .intermediate_size = init.intermediate_size,
                            .layers = init.layers, .heads = init.heads, .kv_heads = init.kv_heads};
  model.head_dim = init.head_dim != 0 ? init.head_dim : init.hidden_size / init.heads;
  model.positions_max = init.positions_max;
  model.rms_norm_eps = static_cast<float>(init.rms_norm_eps);
  model.tied_embeddings = init.tied_embeddings;
  model.qkv_bias = model.family == models::Family::qwen2;
  model.qk_norm = model.family == models::Family::qwen3;
  model.rope.theta = init.rope_theta;
  model.initializer_range = init.initializer_range;
  model.eos_token_ids = {tokenizer.end()};
  if (auto done = models::check_config(model, "model.init"); !done) return done.error();
  return LoadedModel{.config = model, .weights = models::initial_weights(model, config.common.seed), .tokenizer = tokenizer};
}

Result<LoadedModel> starting_model(const SftConfig& config) {
  if (config.common.model_path.empty()) return model_from_scratch(config);
  auto model = open_model(config.common.model_path);
  if (model && !model->tokenizer) return refused(fmt::format("model.path: want a folder with a tokenizer.json, got {} without", config.common.model_path.string()));
  return model;
}

/// What a checkpoint holds.
struct SftCheckpoint {
  std::uint64_t step = 0;
  models::ModelConfig model;
  models::TrainerState trainer;
  TROUPE_FIELDS(step, model, trainer)
};

// run.h5, with what only checkpoints and files are kept of: an sft run sends no messages.
Result<record::RunRecord> open_record(const SftConfig& config, const JobContext& context) {
  if (context.state == RunState::resumed) return record::RunRecord::open(context.run);
  auto record = record::RunRecord::create(context.run, {.run_id = config_digest(config).hex(), .configuration = canonical_text(config), .build_id = {}, .contract = models::numerics::contract_label(), .level = "off", .facts = {}});
  if (!record) return record;
  for (const char* file : {"job.toml", "inputs.json"}) {
    if (auto done = record->add_file(file); !done) return done.error();
  }
  return record;
}

/// One run of the job in this process.
class SftRun {
 public:
  SftRun(const SftConfig& config, JobContext& context, LoadedModel model, std::vector<models::TrainingSequence> examples, std::unique_ptr<models::Trainer> trainer, record::RunRecord record)
      : config_(config), context_(context), model_(std::move(model)), examples_(std::move(examples)), order_(examples_.size(), config.common.seed), trainer_(std::move(trainer)), record_(std::move(record)) {}

  Result<JobEnd> run();

 private:
  Result<void> restore();
  Result<void> keep_tokenizer();
  Result<Metrics> step(std::uint64_t number);
  Result<void> save(std::uint64_t number);
  bool is_checkpoint_due(std::uint64_t number) const { return config_.common.checkpoint_every != 0 && number % config_.common.checkpoint_every == 0; }
  Result<JobEnd> finish();

  const SftConfig& config_;
  JobContext& context_;
  LoadedModel model_;
  std::vector<models::TrainingSequence> examples_;
  models::ExampleOrder order_;
  std::unique_ptr<models::Trainer> trainer_;
  record::RunRecord record_;
  Metrics last_;
};

Result<void> SftRun::restore() {
  const std::uint64_t start = record_.checkpoints().empty() ? 0 : record_.checkpoints().back().step;
  const bool is_saved = !record_.checkpoints().empty();
  if (auto attempt = record_.begin_attempt(start, 1); !attempt) return attempt.error();
  if (!is_saved) return save(0);
  auto value = record_.load_checkpoint(start);
  if (!value) return value.error();
  SftCheckpoint checkpoint;
  if (auto done = from_value(*value, checkpoint); !done) return done;
  if (auto done = trainer_->restore(checkpoint.trainer); !done) return done;
  context_.progress.note(fmt::format("goes on from step {}", start));
  return {};
}

// Also where the model goes elsewhere, so that a run's checkpoints can be generated from.
Result<void> SftRun::keep_tokenizer() {
  const auto folder = run_paths::trained_model(context_.run);
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) return Error{ErrorCode::io, fmt::format("{}: could not be made: {}", folder.string(), code.message())};
  return model_.tokenizer->save(folder);
}

Result<Metrics> SftRun::step(std::uint64_t number) {
  const double began_s = monotonic_seconds();
  std::vector<models::TrainingSequence> batch;
  for (const std::uint64_t example : order_.step(number - 1, config_.data.train_batch_size)) batch.push_back(examples_[example]);
  auto trained = trainer_->train_tokens(batch, config_.learner.micro_batch);
  if (!trained) return trained.error();
  std::uint64_t tokens = 0;
  for (const auto& sequence : batch) tokens += sequence.tokens.size();
  Metrics metrics = trained->values;
  const double taken_s = monotonic_seconds() - began_s;
  metrics["training/global_step"] = static_cast<double>(number);
  metrics["training/epoch"] = static_cast<double>((number - 1) * config_.data.train_batch_size / examples_.size());
  metrics["timing_s/step"] = taken_s;
  metrics["perf/total_num_tokens"] = static_cast<double>(tokens);
  metrics["perf/throughput"] = static_cast<double>(tokens) / std::max(taken_s, 1e-9);
  context_.progress.step({.step = number, .steps = config_.common.steps, .tokens = tokens, .reward = {}, .accuracy = {}, .loss = metrics["train/loss"]});
  return metrics;
}

Result<void> SftRun::save(std::uint64_t number) {
  auto state = trainer_->state();
  if (!state) return state.error();
  const std::string digest = models::weights_digest(state->weights).hex();
  const SftCheckpoint checkpoint{.step = number, .model = model_.config, .trainer = std::move(*state)};
  if (auto done = record_.add_checkpoint(number, to_value(checkpoint), digest); !done) return done;
  return config_.common.checkpoint_keep == 0 ? Result<void>() : record_.keep(config_.common.checkpoint_keep);
}

Result<JobEnd> SftRun::run() {
  if (auto done = restore(); !done) return done.error();
  if (auto done = keep_tokenizer(); !done) return done.error();
  auto metrics_file = MetricsFile::open(run_paths::metrics(context_.run), trainer_->steps_done());
  if (!metrics_file) return metrics_file.error();
  auto events = EventFile::create(context_.run, trainer_->steps_done() + 1);
  if (!events) return events.error();
  while (trainer_->steps_done() < config_.common.steps) {
    const std::uint64_t number = trainer_->steps_done() + 1;
    auto metrics = step(number);
    if (!metrics) return metrics.error();
    if (auto done = metrics_file->append(number, *metrics); !done) return done.error();
    if (auto done = events->append(number, *metrics); !done) return done.error();
    last_ = std::move(*metrics);
    const auto stopped = context_.stop.exit_code();
    if (stopped || is_checkpoint_due(number) || number == config_.common.steps) {
      if (auto done = save(number); !done) return done.error();
    }
    if (stopped && number < config_.common.steps) return JobEnd{.code = *stopped};
  }
  return finish();
}

Result<JobEnd> SftRun::finish() {
  auto weights = trainer_->weights();
  if (!weights) return weights.error();
  const auto folder = config_.output.empty() ? run_paths::trained_model(context_.run) : config_.output;
  if (auto done = models::save_model_folder(folder, model_.config, *weights, &*model_.tokenizer); !done) return done.error();
  Summary summary;
  summary.steps = config_.common.steps;
  summary.digest = models::weights_digest(*weights).hex();
  for (const char* name : {"train/loss", "train/grad_norm", "train/lr", "perf/throughput"}) {
    if (const auto found = last_.find(name); found != last_.end()) summary.metrics.insert(*found);
  }
  if (auto done = record_.seal("done"); !done) return done.error();
  return JobEnd{.code = 0, .summary = std::move(summary)};
}

}  // namespace

Result<JobEnd> run_sft(const SftConfig& config, JobContext& context) {
  if (context.ranks() > 1) return Error{ErrorCode::unsupported, fmt::format("job = \"sft\": want one rank, got {}; it uses the threads of one process", context.ranks())};
  auto model = starting_model(config);
  if (!model) return model.error();
  auto examples = read_examples(config.data.path, *model->tokenizer, config.data.max_length);
  if (!examples) return examples.error();
  auto pool = start_compute(config.common.threads, config.common.simd);
  if (!pool) return pool.error();
  models::store_as(model->weights, models::Dtype::float32);
  model->config.dtype = models::Dtype::float32;
  const auto settings = optimizer_settings(config.optim, config.clip_grad, config.common.steps);
  auto trainer = models::Trainer::create(model->config, model->weights, settings, **pool);
  if (!trainer) return trainer.error();
  auto record = open_record(config, context);
  if (!record) return record.error();
  return SftRun(config, context, std::move(*model), std::move(*examples), std::move(*trainer), std::move(*record)).run();
}

}  // namespace troupe::jobs
