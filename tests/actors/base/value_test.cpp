#include "actors/base/value.hpp"

#include <gtest/gtest.h>

#include "actors/base/fields.hpp"

namespace troupe {
namespace {

struct Layer {
  std::vector<float> weights;
  std::vector<std::uint64_t> shape;
  std::optional<int> rank;
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    auto tensor = shaped(weights, shape);
    archive& boost::serialization::make_nvp("weights", tensor);
    archive& BOOST_SERIALIZATION_NVP(rank);
  }
};

struct State {
  std::string name;
  std::vector<Layer> layers;
  TROUPE_FIELDS(name, layers)
};

State sample() { return {.name = "s", .layers = {{.weights = {1, 2, 3, 4}, .shape = {2, 2}, .rank = 5}, {.weights = {9}, .shape = {1}, .rank = std::nullopt}}}; }

TEST(Value, KeepsNamesTypesAndShapes) {
  const Value value = to_value(sample());
  ASSERT_EQ(value.kind, Value::Kind::record);
  EXPECT_EQ(value.names, (std::vector<std::string>{"name", "layers"}));
  const Value* weights = value.find("layers")->children[0].find("weights");
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(weights->type, ScalarType::float32);
  EXPECT_EQ(weights->shape, (std::vector<std::uint64_t>{2, 2}));
  EXPECT_EQ(weights->brief(), "float32[2, 2] {1, 2, 3, 4}");
}

TEST(Value, ReadsBackWhatItWrote) {
  State back;
  auto result = from_value(to_value(sample()), back);
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(back.layers[0].weights, sample().layers[0].weights);
  EXPECT_EQ(back.layers[0].rank, 5);
  EXPECT_EQ(back.layers[1].rank, std::nullopt);
  EXPECT_FALSE(first_difference(to_value(back), to_value(sample())));
}

TEST(Value, NamesTheFirstDifference) {
  State other = sample();
  other.layers[0].weights[2] = 7;
  const auto difference = first_difference(to_value(sample()), to_value(other));
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->path, "layers[0].weights[2]");
  EXPECT_EQ(difference->left, "3");
  EXPECT_EQ(difference->right, "7");
}

TEST(Value, NamesAMissingField) {
  Value value = to_value(sample());
  value.names[1] = "tiers";
  State back;
  auto result = from_value(value, back);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().detail.find("layers"), std::string::npos);
}

TEST(Value, RefusesAnotherType) {
  Value value = to_value(sample());
  State back;
  value.children[0] = to_value(3);
  EXPECT_FALSE(from_value(value, back));
}

}  // namespace
}  // namespace troupe
