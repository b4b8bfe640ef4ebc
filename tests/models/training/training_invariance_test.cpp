// One answer, whatever the layout: weights, metrics and log-probabilities of training steps, bit for bit.

#include <gmock/gmock.h>

#include <numeric>

#include "models/engine.hpp"
#include "models/training/gang.hpp"

namespace troupe::models {
namespace {

using namespace testing;

/// What two steps of each kind leave.
struct Outcome {
  std::vector<StepMetrics> metrics;
  std::vector<std::vector<float>> logprobs, policy_logprobs;
  TrainerState state;
};

::testing::AssertionResult same(const Outcome& a, const Outcome& b) {
  for (std::size_t i = 0; i < a.metrics.size(); ++i) {
    const auto metrics = same_metrics(a.metrics[i], b.metrics[i]);
    if (!metrics) return ::testing::AssertionFailure() << "step " << i << ": " << metrics.message();
  }
  if (a.logprobs != b.logprobs || a.policy_logprobs != b.policy_logprobs) return ::testing::AssertionFailure() << "log-probabilities";
  if (a.state.step != b.state.step) return ::testing::AssertionFailure() << "steps";
  for (const auto part : {&TrainerState::weights, &TrainerState::first_moments, &TrainerState::second_moments}) {
    const auto weights = same_weights(a.state.*part, b.state.*part);
    if (!weights) return weights;
  }
  return ::testing::AssertionSuccess();
}

/// Lengths from 1 to beyond a block of gradients, so that trees are odd inside sequences and over them.
std::vector<Tokens> sequences_of(std::size_t count, std::uint32_t vocabulary) {
  const std::size_t lengths[] = {5, 1, 130, 12, 2, 257, 3, 64, 9, 31, 7, 128, 4};
  std::vector<Tokens> out;
  for (std::size_t i = 0; i < count; ++i) {
    Tokens tokens(lengths[i % std::size(lengths)]);
    for (std::size_t t = 0; t < tokens.size(); ++t) tokens[t] = static_cast<TokenId>((t * t * 3 + t * (i + 1) + i * 5) % vocabulary);
    out.push_back(tokens);
  }
  return out;
}

std::vector<PolicySequence> policy_batch(const std::vector<Tokens>& sequences) {
  std::vector<PolicySequence> batch;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    PolicySequence sequence{.tokens = sequences[i], .prompt_length = static_cast<std::uint32_t>(1 + i % std::min<std::size_t>(3, sequences[i].size())),
                            .advantage = 0.5 * static_cast<double>(i % 5) - 1};
    const std::size_t response = sequence.tokens.size() - sequence.prompt_length;
    for (std::size_t t = 0; t < response; ++t) {
      if (i % 2 == 0) sequence.old_logprobs.push_back(-0.25F * static_cast<float>((t + i) % 13));
      sequence.reference_logprobs.push_back(-0.3F * static_cast<float>((t * 3 + i) % 11));
    }
    batch.push_back(sequence);
  }
  return batch;
}

Outcome train(Trainer& trainer, const std::vector<Tokens>& sequences, std::uint32_t micro_batch) {
  std::vector<TrainingSequence> batch;
  for (const Tokens& tokens : sequences) batch.push_back(counted(tokens));
  Outcome out;
  out.metrics.push_back(trainer.train_tokens(batch, micro_batch).value());
  PolicySettings settings{.kl_loss_coef = 0.01, .entropy_coeff = 0.02, .temperature = 0.9};
  for (const char* mode : {"vanilla", "gspo"}) {
    settings.loss_mode = mode;
    auto result = trainer.train_policy(policy_batch(sequences), settings, micro_batch).value();
    out.metrics.push_back(result.metrics);
    out.policy_logprobs = result.logprobs;
  }
  out.logprobs = trainer.logprobs(sequences, 0.9F, micro_batch).value();
  out.state = trainer.state().value();
  return out;
}

class TrainingInvariance : public ::testing::TestWithParam<Family> {
 protected:
  ModelConfig config = training_config(GetParam());

  TrainingInvariance() { config.positions_max = 512; }

  std::vector<Outcome> outcomes(const Layout& layout, std::size_t count, const ModelConfig& model) const {
    const OptimizerSettings settings{.learning_rate = 1e-2, .warmup_steps = 2, .schedule = "cosine", .total_steps = 10};
    return on_gang<Outcome>(model, training_weights(model), settings, layout,
                            [&](Trainer& trainer, std::uint32_t micro_batch) { return train(trainer, sequences_of(count, model.vocab_size), micro_batch); });
  }
  void expect_same(const std::vector<Layout>& layouts, std::size_t count, const ModelConfig& model) const {
    const Outcome one = outcomes({}, count, model)[0];
    for (const Layout& layout : layouts) {
      for (const Outcome& each : outcomes(layout, count, model)) EXPECT_TRUE(same(each, one)) << layout << ", " << count << " sequences";
    }
  }
};

TEST_P(TrainingInvariance, MicroBatches) { expect_same({{.micro_batch = 1}, {.micro_batch = 3}, {.micro_batch = 8}}, 11, config); }

TEST_P(TrainingInvariance, Threads) { expect_same({{.threads = 2}, {.threads = 3, .micro_batch = 4}}, 11, config); }

TEST_P(TrainingInvariance, TensorParallel) { expect_same({{.tensor = 2}, {.tensor = 4, .micro_batch = 3}}, 6, config); }

TEST_P(TrainingInvariance, EightShards) { expect_same({{.tensor = 8}}, 3, training_config(GetParam(), 8)); }

TEST_P(TrainingInvariance, DataParallel) {
  // 8 sequences are one node each for 2 and 4 members; 11 and 13 are not; 3 leave a member of 4 without any.
  for (const std::size_t count : {3U, 8U, 11U, 13U}) expect_same({{.data = 2, .micro_batch = 3}, {.data = 4, .micro_batch = 2}}, count, config);
}

TEST_P(TrainingInvariance, TensorAndDataParallelTogether) {
  expect_same({{.tensor = 2, .data = 2, .micro_batch = 1}, {.tensor = 4, .data = 2, .micro_batch = 2}, {.tensor = 2, .data = 4, .micro_batch = 8}}, 7, config);
}

TEST_P(TrainingInvariance, LogprobsAreTheEnginesAndTheStepsOwn) {
  ThreadPool pool(1);
  const Weights weights = training_weights(config);
  const auto sequences = sequences_of(9, config.vocab_size);
  const auto model = Model::create(config, weights, pool).value();
  const auto trainer = Trainer::create(config, weights, {}, pool).value();
  const auto wanted = Engine(*model, {.batch_max = 3}).score(sequences, 0.7F).value();
  EXPECT_EQ(trainer->logprobs(sequences, 0.7F, 2).value(), wanted);
  std::vector<PolicySequence> batch;
  for (const Tokens& tokens : sequences) batch.push_back({.tokens = tokens, .prompt_length = 1, .advantage = 1});
  const Trainer::PolicyResult result = trainer->train_policy(batch, {.temperature = 0.7F}, 4).value();
  EXPECT_EQ(result.logprobs, wanted);
  EXPECT_EQ(result.metrics.values.at("actor/ppo_kl"), 0);
  EXPECT_EQ(result.metrics.values.at("actor/pg_loss"), -1);
}

TEST_P(TrainingInvariance, RolloutLogprobsGiveRatiosOfExactlyOne) {
  ThreadPool pool(1);
  const Weights weights = training_weights(config);
  const auto trainer = Trainer::create(config, weights, {}, pool).value();
  Engine engine(trainer->model(), {.batch_max = 5});
  const std::vector<Request> requests = {{.prompt = {1, 2, 3}, .draw = 4, .n = 3, .max_tokens = 20, .sampling = {.temperature = 0.8F, .seed = 9}}};
  std::vector<PolicySequence> batch;
  for (const Completion& completion : engine.generate(requests).value()) {
    PolicySequence sequence{.tokens = requests[0].prompt, .prompt_length = 3, .old_logprobs = completion.logprobs, .advantage = 0.5};
    sequence.tokens.insert(sequence.tokens.end(), completion.tokens.begin(), completion.tokens.end());
    batch.push_back(sequence);
  }
  const Trainer::PolicyResult result = trainer->train_policy(batch, {.temperature = 0.8F}, 2).value();
  for (std::size_t i = 0; i < batch.size(); ++i) EXPECT_TRUE(same_bits(result.logprobs[i], batch[i].old_logprobs)) << i;
  EXPECT_EQ(result.metrics.values.at("actor/pg_loss"), -0.5);
}

TEST_P(TrainingInvariance, RestoredTrainersGoOnWithTheSameBitsInAnotherLayout) {
  const OptimizerSettings settings{.learning_rate = 1e-2};
  const auto sequences = sequences_of(6, config.vocab_size);
  std::vector<TrainingSequence> batch;
  for (const Tokens& tokens : sequences) batch.push_back(counted(tokens));
  ThreadPool pool(1);
  const auto trainer = Trainer::create(config, training_weights(config), settings, pool).value();
  trainer->train_tokens(batch, 4).value();
  const TrainerState saved = trainer->state().value();
  const StepMetrics next = trainer->train_tokens(batch, 4).value();
  const Weights wanted = trainer->weights().value();
  const auto restored = on_gang<Weights>(config, initial_weights(config, 99), settings, {.tensor = 2, .data = 2}, [&](Trainer& other, std::uint32_t micro_batch) {
    other.restore(saved).value();
    EXPECT_EQ(other.steps_done(), 1U);
    EXPECT_TRUE(same_metrics(other.train_tokens(batch, micro_batch).value(), next));
    return other.weights().value();
  });
  for (const Weights& each : restored) EXPECT_TRUE(same_weights(each, wanted));
}

INSTANTIATE_TEST_SUITE_P(Families, TrainingInvariance, ::testing::Values(Family::llama, Family::qwen2, Family::qwen3),
                         [](const auto& family) { return std::string(to_string(family.param)); });

}  // namespace
}  // namespace troupe::models
