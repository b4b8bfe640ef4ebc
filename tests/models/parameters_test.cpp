#include "models/parameters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/reference.hpp"
#include "models/weights.hpp"

namespace troupe::models {
namespace {

TEST(Parameters, AreAscendingByName) {
  for (const std::string& name : testing::reference_names()) {
    const auto all = parameters(load_config(testing::data_folder() / name).value());
    EXPECT_TRUE(std::ranges::is_sorted(all, std::ranges::less{}, &Parameter::name)) << name;
  }
}

TEST(Parameters, CountAsTheReferenceSays) { EXPECT_EQ(parameter_count(load_config(testing::data_folder() / "llama3").value()), 104768U); }

TEST(Shards, CoverEveryDimensionOnceInSegmentCuts) {
  for (const std::uint64_t extent : {1U, 7U, 8U, 31U, 33U, 288U}) {
    for (const std::uint32_t degree : {1U, 2U, 4U, 8U}) {
      std::uint64_t at = 0;
      for (std::uint32_t i = 0; i < degree; ++i) {
        const Range range = shard_range(extent, {degree, i});
        EXPECT_EQ(range.begin, at);
        EXPECT_EQ(range.end, (8 / degree) * (i + 1) * extent / 8);
        at = range.end;
      }
      EXPECT_EQ(at, extent);
    }
  }
}

TEST(Shards, PutTogetherGiveTheWhole) {
  const ModelConfig config = testing::tiny_config();
  const Weights weights = initial_weights(config, 1);
  for (const Parameter& parameter : parameters(config)) {
    const Tensor& whole = weights.at(parameter.name);
    for (const std::uint32_t degree : allowed_degrees(config)) {
      Tensor again = Tensor::zeros(parameter.shape);
      for (std::uint32_t i = 0; i < degree; ++i) place_shard(parameter, shard_of(parameter, whole, {degree, i}), {degree, i}, again);
      EXPECT_EQ(again.data, whole.data) << parameter.name << " " << degree;
    }
  }
}

TEST(Degrees, AreThoseThatDivideTheHeads) {
  ModelConfig config = testing::tiny_config();
  EXPECT_EQ(allowed_degrees(config), (std::vector<std::uint32_t>{1, 2, 4}));
  const auto refused = check_degree(config, 8);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().detail.find("(1, 2, 4), got 8"), std::string::npos) << refused.error().detail;
  EXPECT_FALSE(check_degree(config, 3));
  EXPECT_TRUE(check_degree(config, 4));
  config.heads = 3;
  config.kv_heads = 1;
  EXPECT_EQ(allowed_degrees(config), (std::vector<std::uint32_t>{1}));
}

TEST(InitialWeights, AreAFunctionOfConfigAndSeed) {
  const ModelConfig config = testing::tiny_config();
  const Weights weights = initial_weights(config, 7);
  EXPECT_TRUE(check_weights(config, weights));
  EXPECT_EQ(weights_digest(weights), weights_digest(initial_weights(config, 7)));
  EXPECT_NE(weights_digest(weights), weights_digest(initial_weights(config, 8)));
  EXPECT_EQ(weights.at("model.norm.weight").data, std::vector<float>(24, 1.0F));
}

TEST(InitialWeights, AreNormalWithTheRangeOfTheConfiguration) {
  ModelConfig config = testing::tiny_config();
  config.vocab_size = 2000;
  const std::vector<float> values = initial_weights(config, 3).at("model.embed_tokens.weight").data;
  double sum = 0, squares = 0, beyond = 0;
  for (const float value : values) {
    sum += value;
    squares += double{value} * value;
    beyond += std::abs(value) > 2 * 0.02F ? 1 : 0;
  }
  const auto n = static_cast<double>(values.size());  // 48,000: the mean's deviation is 0.02 / 219, that of the variance 0.65 %
  EXPECT_NEAR(sum / n, 0.0, 5 * 0.02 / 219);
  EXPECT_NEAR(squares / n / (0.02 * 0.02), 1.0, 5 * 0.0065);
  EXPECT_NEAR(beyond / n, 0.0455, 5 * 0.00095);
}

}  // namespace
}  // namespace troupe::models
