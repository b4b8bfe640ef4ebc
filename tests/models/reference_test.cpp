// The reference folders: logits, log-probabilities and greedy continuations within the tolerances stated there, and against the naive model.

#include <gtest/gtest.h>

#include "models/cases.hpp"
#include "models/computing.hpp"
#include "models/engine.hpp"
#include "models/naive_model.hpp"

namespace troupe::models {
namespace {

using namespace testing;

class Reference : public ::testing::TestWithParam<std::string> {
 protected:
  ModelFolder folder = load_reference(GetParam());
  Cases cases = load_cases(GetParam());
  ThreadPool pool{1};
  std::unique_ptr<Model> model = Model::create(folder.config, folder.weights, pool).value();
};

double largest_difference(std::span<const float> got, std::span<const double> wanted) {
  EXPECT_EQ(got.size(), wanted.size());
  double largest = 0;
  for (std::size_t i = 0; i < std::min(got.size(), wanted.size()); ++i) largest = std::max(largest, std::abs(double{got[i]} - wanted[i]));
  return largest;
}

TEST_P(Reference, LogitsAreWithinTheTolerance) {
  for (const Case& each : cases.all) EXPECT_LE(largest_difference(alone(*model, each.tokens), each.logits), cases.logits_abs) << each.name;
}

TEST_P(Reference, LogprobsAreWithinTheTolerance) {
  Engine engine(*model, {});
  for (const Case& each : cases.all) {
    const std::vector<Tokens> one = {each.tokens};
    EXPECT_LE(largest_difference(engine.score(one).value()[0], each.token_logprobs), cases.logprob_abs) << each.name;
  }
}

TEST_P(Reference, GreedyContinuationIsTheSame) {
  Engine engine(*model, {});
  std::vector<Request> requests;
  for (const Case& each : cases.all) {
    requests.push_back({.prompt = each.tokens, .draw = 0, .n = 1, .max_tokens = 16, .sampling = {.temperature = 0}, .ignore_eos = true});
  }
  const auto completions = engine.generate(requests).value();
  for (std::size_t i = 0; i < cases.all.size(); ++i) EXPECT_EQ(completions[i].tokens, cases.all[i].greedy) << cases.all[i].name;
}

// The naive model is float64, so its distance to the reference's float64 shows that both mean the same model.
TEST_P(Reference, NaiveModelAgreesWithTheReferenceToFloat64) {
  const NaiveModel naive(folder.config, folder.weights);
  for (const Case& each : cases.all) {
    const Rows rows = naive.logits(each.tokens);
    double largest = 0;
    for (std::size_t t = 0; t < rows.size(); ++t) {
      for (std::size_t v = 0; v < rows[t].size(); ++v) largest = std::max(largest, std::abs(rows[t][v] - each.logits[t * rows[t].size() + v]));
    }
    EXPECT_LE(largest, 2e-6) << each.name;  // the eps of the norms is a float here, a double there
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, Reference, ::testing::ValuesIn(reference_names()), [](const auto& name) { return name.param; });

TEST(NaiveModel, AgreesOnOddSizes) {
  for (const Family family : {Family::llama, Family::qwen2, Family::qwen3}) {
    ModelConfig config = tiny_config();
    config.family = family;
    config.qkv_bias = family == Family::qwen2;
    config.output_bias = family == Family::llama;
    config.qk_norm = family == Family::qwen3;
    config.initializer_range = 0.3;
    Weights weights = initial_weights(config, 11);
    for (auto& [name, tensor] : weights) {
      for (std::size_t i = 0; tensor.shape.size() == 1 && i < tensor.data.size(); ++i) tensor.data[i] += 0.1F * static_cast<float>(i % 7);
    }
    ThreadPool pool(1);
    const auto model = Model::create(config, weights, pool).value();
    const NaiveModel naive(config, weights);
    Tokens tokens(100);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>(i * i % 37);
    const Rows wanted = naive.logits(tokens);
    Row flat;
    for (const Row& row : wanted) flat.insert(flat.end(), row.begin(), row.end());
    // About 2 · layers matrices of depth ≤ 48 in a row, values of some units: float32's 6e-8 · √48 · 10 · a margin of 10.
    EXPECT_LE(largest_difference(alone(*model, tokens), flat), 5e-5);
  }
}

}  // namespace
}  // namespace troupe::models
