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

}  // namespace
}  // namespace troupe::models
