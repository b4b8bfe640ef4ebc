// The reference folders' training.json: losses, norms and parameters of three AdamW steps; state, errors, policy steps.

#include <gmock/gmock.h>

#include <cmath>

#include "actors/base/wire.hpp"
#include "models/engine.hpp"
#include "models/training/gang.hpp"

namespace troupe::models {
namespace {

using namespace testing;
using ::testing::HasSubstr;

OptimizerSettings reference_settings() { return {.learning_rate = 1e-3, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1, .grad_clip = 1.0}; }

std::vector<TrainingSequence> reference_batch(const std::string& folder) {
  std::vector<TrainingSequence> batch;
  for (const Case& each : load_cases(folder).all) batch.push_back(counted(each.tokens));
  return batch;
}

class ReferenceTraining : public ::testing::TestWithParam<std::string> {};

TEST_P(ReferenceTraining, ThreeStepsAreWithinTheTolerances) {
  const boost::json::value wanted = boost::json::parse(text_of(data_folder() / GetParam() / "training.json"));
  const boost::json::value& tolerance = wanted.at("tolerance");
  const auto number = [](const boost::json::value& value) { return value.to_number<double>(); };
  const ModelFolder folder = load_reference(GetParam());
  const std::vector<TrainingSequence> batch = reference_batch(GetParam());
  ThreadPool pool(1);
  const auto trainer = Trainer::create(folder.config, folder.weights, reference_settings(), pool).value();
  const auto losses = list_of<double>(wanted.at("losses_before_each_step_and_after_the_last"));
  const auto norms = list_of<double>(wanted.at("gradient_norms_before_clipping"));
  for (std::size_t step = 0; step < 3; ++step) {
    const StepMetrics metrics = trainer->train_tokens(batch, 8).value();
    EXPECT_NEAR(metrics.values.at("train/loss"), losses[step], number(tolerance.at("loss_abs"))) << step;
    EXPECT_NEAR(metrics.values.at("train/grad_norm") / norms[step], 1, number(tolerance.at("gradient_norm_rel"))) << step;
  }
  EXPECT_NEAR(trainer->evaluate_tokens(batch, 8).value(), losses[3], number(tolerance.at("loss_abs")));
  const Weights after = trainer->weights().value();
  for (const auto& [name, parameter] : wanted.at("parameters_after_3_steps").as_object()) {
    double squares = 0, change = 0;
    const Tensor& start = folder.weights.at(std::string(name));
    const Tensor& end = after.at(std::string(name));
    for (std::size_t i = 0; i < end.data.size(); ++i) {
      squares += std::pow(double{end.data[i]}, 2);
      change += std::pow(double{end.data[i]} - double{start.data[i]}, 2);
    }
    EXPECT_NEAR(std::sqrt(squares) / number(parameter.at("norm")), 1, number(tolerance.at("norm_rel"))) << name;
    EXPECT_NEAR(std::sqrt(change) / number(parameter.at("change_norm")), 1, number(tolerance.at("change_norm_rel"))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, ReferenceTraining, ::testing::Values("llama", "qwen2", "qwen3"), [](const auto& name) { return name.param; });

TEST(OptimizerSettings, WarmUpThenCosine) {
  const OptimizerSettings settings{.learning_rate = 2, .warmup_steps = 4, .schedule = "cosine", .total_steps = 12, .min_lr_ratio = 0.1};
  EXPECT_EQ(learning_rate(settings, 1), 0.5);
  EXPECT_EQ(learning_rate(settings, 4), 2);
  EXPECT_NEAR(learning_rate(settings, 8), 2 * 0.55, 1e-15);
  EXPECT_NEAR(learning_rate(settings, 12), 0.2, 1e-15);
  EXPECT_NEAR(learning_rate(settings, 50), 0.2, 1e-15);
  EXPECT_EQ(learning_rate({.learning_rate = 3, .warmup_steps = 2}, 100), 3);
}

TEST(OptimizerSettings, StepHasCorrectionsAndClipping) {
  const AdamW step = adamw_step({.beta1 = 0.9, .beta2 = 0.99, .grad_clip = 0.5}, 3, 2.0);
  EXPECT_NEAR(step.correction1, 1 - 0.729, 1e-15);
  EXPECT_NEAR(step.correction2, 1 - 0.970299, 1e-15);
  EXPECT_NEAR(step.gradient_scale, 0.5 / (2 + 1e-6), 1e-16);
  EXPECT_EQ(adamw_step({.grad_clip = 5}, 1, 2.0).gradient_scale, 1);
  EXPECT_EQ(adamw_step({.grad_clip = 0}, 1, 2e9).gradient_scale, 1);
}

TEST(OptimizerSettings, RefuseWhatIsOutOfRange) {
  EXPECT_THAT(check_settings({.beta2 = 1}).error().detail, HasSubstr("beta2"));
  EXPECT_THAT(check_settings({.schedule = "linear"}).error().detail, HasSubstr("cosine"));
  EXPECT_THAT(check_settings({.warmup_steps = 5, .schedule = "cosine", .total_steps = 5}).error().detail, HasSubstr("total_steps"));
  EXPECT_TRUE(check_settings({}));
}

class SmallTrainer : public ::testing::Test {
 protected:
  ModelConfig config = training_config(Family::qwen2);
  ThreadPool pool{1};
  std::unique_ptr<Trainer> trainer = Trainer::create(config, training_weights(config), {.learning_rate = 1e-2}, pool).value();
  std::vector<TrainingSequence> batch = {counted({1, 2, 3, 4}), counted({5, 6})};

  void expect_refused(const Result<StepMetrics>& result, const std::string& detail) const {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::bad_input);
    EXPECT_THAT(result.error().detail, HasSubstr(detail));
  }
};

TEST_F(SmallTrainer, LearnsWhatItIsShown) {
  const double before = trainer->evaluate_tokens(batch, 2).value();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(trainer->train_tokens(batch, 2));
  EXPECT_LT(trainer->evaluate_tokens(batch, 2).value(), before / 4);
  EXPECT_EQ(trainer->steps_done(), 20U);
}

TEST_F(SmallTrainer, RaisesWhatHasAnAdvantageAndLowersTheRest) {
  const std::vector<PolicySequence> choices = {{.tokens = {1, 2, 9}, .prompt_length = 2, .advantage = 1}, {.tokens = {1, 2, 30}, .prompt_length = 2, .advantage = -1}};
  const auto before = trainer->train_policy(choices, {}, 2).value().logprobs;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(trainer->train_policy(choices, {}, 2));
  const auto after = trainer->train_policy(choices, {}, 2).value().logprobs;
  EXPECT_GT(after[0][0], before[0][0]);
  EXPECT_LT(after[1][0], before[1][0]);
}

TEST_F(SmallTrainer, MaskedResponseTokensTeachNothing) {
  PolicySequence whole{.tokens = {1, 2, 9, 8, 7}, .prompt_length = 2, .advantages = {1, 0, 2}};
  PolicySequence masked = whole;
  masked.advantages[1] = 77;
  masked.mask = {1, 0, 1};
  const auto other = Trainer::create(config, training_weights(config), {.learning_rate = 1e-2}, pool).value();
  const PolicySettings settings{.loss_mode = "gpg", .loss_agg_mode = "token-sum"};
  trainer->train_policy(std::vector{whole}, settings, 1).value();
  other->train_policy(std::vector{masked}, settings, 1).value();
  EXPECT_TRUE(same_weights(trainer->weights().value(), other->weights().value()));
}

TEST_F(SmallTrainer, CountsClippedTokens) {
  PolicySequence sequence{.tokens = {1, 2, 9, 8, 7}, .prompt_length = 1, .advantage = -1};
  const std::vector<Tokens> one = {sequence.tokens};
  const std::vector<float> own = trainer->logprobs(one, 1, 1).value()[0];
  sequence.old_logprobs = {own[0] - 3, own[1] + 3, own[2], own[3]};  // ratios e³, e⁻³, 1, 1
  const StepMetrics metrics = trainer->train_policy(std::vector{sequence}, {}, 1).value().metrics;
  EXPECT_EQ(metrics.values.at("actor/pg_clipfrac"), 0.25);
  EXPECT_EQ(metrics.values.at("actor/pg_clipfrac_lower"), 0.25);
  EXPECT_NEAR(metrics.values.at("actor/ppo_kl"), 0, 1e-6);
  EXPECT_NEAR(metrics.values.at("actor/pg_loss"), (3 + 0.8 + 1 + 1) / 4, 1e-6);
}

TEST_F(SmallTrainer, RefusesBadBatchesBeforeAnythingChanges) {
  const Weights before = trainer->weights().value();
  expect_refused(trainer->train_tokens({}, 1), "at least one sequence");
  expect_refused(trainer->train_tokens(batch, 0), "micro_batch");
  batch[1].tokens[0] = 37;
  expect_refused(trainer->train_tokens(batch, 1), "sequence 1");
  batch[1] = {.tokens = {1, 2}, .mask = {1, 1}};
  expect_refused(trainer->train_tokens(batch, 1), "token 0");
  batch[1].mask = {0};
  expect_refused(trainer->train_tokens(batch, 1), "mask of 2");
  expect_refused(trainer->train_tokens(std::vector{TrainingSequence{.tokens = {1, 2}, .mask = {0, 0}}}, 1), "mask 1");
  EXPECT_EQ(trainer->steps_done(), 0U);
  EXPECT_TRUE(same_weights(trainer->weights().value(), before));
}

TEST_F(SmallTrainer, RefusesAStepWhoseGradientIsNotFinite) {
  const Weights before = trainer->weights().value();
  const PolicySequence endless{.tokens = {1, 2, 3}, .prompt_length = 1, .advantage = INFINITY};
  const auto result = trainer->train_policy(std::vector{endless}, {}, 1);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().detail, HasSubstr("finite"));
  EXPECT_EQ(trainer->steps_done(), 0U);
  EXPECT_TRUE(same_weights(trainer->weights().value(), before));
}

TEST_F(SmallTrainer, RefusesBadPolicyBatches) {
  const PolicySequence good{.tokens = {1, 2, 3}, .prompt_length = 1, .advantage = 1};
  const auto refusal = [&](const PolicySequence& sequence, const PolicySettings& settings) {
    const auto result = trainer->train_policy(std::vector{sequence}, settings, 1);
    return result ? std::string("accepted") : result.error().detail;
  };
  EXPECT_THAT(refusal(good, {.loss_mode = "ppo"}), HasSubstr("vanilla"));
  EXPECT_THAT(refusal(good, {.loss_agg_mode = "mean"}), HasSubstr("token-mean"));
  EXPECT_THAT(refusal(good, {.kl_loss_coef = 0.1}), HasSubstr("reference_logprobs"));
  PolicySequence bad = good;
  bad.old_logprobs = {0.0F};
  EXPECT_THAT(refusal(bad, {}), HasSubstr("2 old_logprobs"));
  bad = good;
  bad.prompt_length = 0;
  EXPECT_THAT(refusal(bad, {}), HasSubstr("prompt_length"));
  bad.prompt_length = 3;
  EXPECT_THAT(refusal(bad, {}), HasSubstr("response token"));
}

TEST_F(SmallTrainer, StateSurvivesTheWire) {
  trainer->train_tokens(batch, 2).value();
  const TrainerState saved = trainer->state().value();
  Bytes bytes;
  encode(bytes, saved);
  const TrainerState read = decode<TrainerState>(bytes).value();
  EXPECT_EQ(read.step, 1U);
  EXPECT_TRUE(same_weights(read.weights, saved.weights));
  EXPECT_TRUE(same_weights(read.second_moments, saved.second_moments));
  ASSERT_TRUE(trainer->restore(read));
}

TEST_F(SmallTrainer, RefusesTheStateOfAnotherModel) {
  TrainerState other = trainer->state().value();
  other.first_moments.erase("model.norm.weight");
  EXPECT_EQ(trainer->restore(other).error().code, ErrorCode::bad_input);
}

}  // namespace
}  // namespace troupe::models
