// One answer, whatever else is computed: the whole model's bits across batches, chunks, threads, shards and instruction sets.

#include <gtest/gtest.h>

#include <algorithm>

#include "models/computing.hpp"
#include "models/engine.hpp"
#include "models/numerics/processor.hpp"

namespace troupe::models {
namespace {

using namespace testing;

/// The families, with an odd vocabulary and intermediate size, heads 8 and kv heads 4.
ModelConfig config_of(Family family) {
  ModelConfig config = tiny_config();
  config.family = family;
  config.qkv_bias = family == Family::qwen2;
  config.qk_norm = family == Family::qwen3;
  config.output_bias = family == Family::llama;
  config.tied_embeddings = family != Family::llama;
  config.initializer_range = 0.3;
  return config;
}

class Invariance : public ::testing::TestWithParam<Family> {
 protected:
  ModelConfig config = config_of(GetParam());
  Weights weights = initial_weights(config, 5);
  ThreadPool pool{1};
  std::unique_ptr<Model> model = Model::create(config, weights, pool).value();
  std::vector<Tokens> prompts = short_prompts(config.vocab_size);

  Tokens long_prompt() const {
    Tokens tokens(150);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<TokenId>((i * 31 + i * i) % config.vocab_size);
    return tokens;
  }
};

TEST_P(Invariance, AloneAndInABatch) {
  Batch batch;
  for (std::size_t i = 0; i < prompts.size(); ++i) batch.add({static_cast<std::uint32_t>(i), 0, static_cast<std::uint32_t>(prompts[i].size())}, prompts[i]);
  const Activation together = logits_of(*model, batch, nullptr);
  std::size_t at = 0;
  for (const Tokens& prompt : prompts) {
    const std::size_t size = prompt.size() * config.vocab_size;
    EXPECT_TRUE(same_bits(alone(*model, prompt), std::span(together).subspan(at, size))) << prompt.size();
    at += size;
  }
}

TEST_P(Invariance, OrderOfArrival) {
  std::vector<Tokens> reversed(prompts.rbegin(), prompts.rend());
  Batch batch;
  KvCache cache = model->make_cache(static_cast<std::uint32_t>(prompts.size()), 12);
  for (std::size_t i = 0; i < reversed.size(); ++i) batch.add({static_cast<std::uint32_t>(i), 0, static_cast<std::uint32_t>(reversed[i].size())}, reversed[i]);
  const Activation together = logits_of(*model, batch, &cache);
  std::size_t at = 0;
  for (const Tokens& prompt : reversed) {
    const std::size_t size = prompt.size() * config.vocab_size;
    EXPECT_TRUE(same_bits(alone(*model, prompt), std::span(together).subspan(at, size))) << prompt.size();
    at += size;
  }
}

TEST_P(Invariance, PrefillChunksAndDecode) {
  const Tokens tokens = long_prompt();
  const Activation whole = alone(*model, tokens);
  for (const std::size_t chunk : {1U, 2U, 7U, 63U, 64U, 65U, 149U, 150U}) EXPECT_TRUE(same_bits(in_chunks(*model, tokens, chunk), whole)) << chunk;
}

TEST_P(Invariance, ChunksOfSeveralSequencesTogether) {
  const Tokens a = long_prompt();
  const Tokens b = prompts[10];
  KvCache cache = model->make_cache(2, 150);
  Batch first, second;
  first.add({1, 0, 70}, std::span(a).first(70));
  first.add({0, 0, 3}, std::span(b).first(3));
  second.add({0, 3, 1}, std::span(b).subspan(3, 1));
  second.add({1, 70, 80}, std::span(a).subspan(70));
  const Activation one = logits_of(*model, first, &cache);
  const Activation two = logits_of(*model, second, &cache);
  const std::size_t v = config.vocab_size;
  EXPECT_TRUE(same_bits(std::span(one).first(70 * v), std::span<const float>(alone(*model, a)).first(70 * v)));
  EXPECT_TRUE(same_bits(std::span(two).subspan(v), std::span<const float>(alone(*model, a)).subspan(70 * v)));
  EXPECT_TRUE(same_bits(std::span(two).first(v), std::span<const float>(alone(*model, b)).subspan(3 * v, v)));
}

TEST_P(Invariance, Threads) {
  const Activation one = alone(*model, long_prompt());
  for (const std::size_t threads : {2U, 3U, 8U}) {
    ThreadPool others(threads);
    const auto again = Model::create(config, weights, others).value();
    EXPECT_TRUE(same_bits(alone(*again, long_prompt()), one)) << threads;
    EXPECT_TRUE(same_bits(in_chunks(*again, prompts[11], 1), alone(*model, prompts[11]))) << threads;
  }
}

TEST_P(Invariance, TensorParallel) {
  const Activation whole = alone(*model, long_prompt());
  for (const std::uint32_t degree : {1U, 2U, 4U}) {
    const auto results = on_shards<Activation>(config, weights, degree, [&](Model& shard) { return alone(shard, long_prompt()); });
    for (const Activation& result : results) EXPECT_TRUE(same_bits(result, whole)) << degree;
    const auto decoded = on_shards<Activation>(config, weights, degree, [&](Model& shard) { return in_chunks(shard, prompts[11], 1); });
    for (const Activation& result : decoded) EXPECT_TRUE(same_bits(result, alone(*model, prompts[11]))) << degree;
  }
}

TEST_P(Invariance, InstructionSets) {
  const auto targets = numerics::supported_targets();
  if (targets.size() < 2) GTEST_SKIP() << "this processor has one instruction set of the two";
  const std::string chosen(to_string(numerics::selected_target()));
  std::vector<Activation> results;
  for (const numerics::SimdTarget target : targets) {
    ASSERT_TRUE(numerics::select_target(to_string(target)));
    results.push_back(alone(*model, long_prompt()));
    results.push_back(in_chunks(*model, long_prompt(), 1));
  }
  ASSERT_TRUE(numerics::select_target(chosen));
  for (const Activation& result : results) EXPECT_TRUE(same_bits(result, results[0]));
}

TEST_P(Invariance, WithATapeAndWithout) {
  Batch batch;
  batch.add({0, 0, 12}, prompts[11]);
  batch.add({1, 0, 150}, long_prompt());
  Tape tape;
  const Activation taped = logits_of(*model, batch, nullptr, &tape);
  EXPECT_TRUE(same_bits(taped, logits_of(*model, batch, nullptr)));
  ASSERT_EQ(tape.layers.size(), config.layers);
  EXPECT_EQ(tape.layers[1].product.size(), 162U * config.intermediate_size);
  EXPECT_EQ(tape.attention_spans(1)[1].first_row, 12U);
}

TEST_P(Invariance, NewWeightsInPlaceAndAFreshModel) {
  const Weights others = initial_weights(config, 6);
  ASSERT_TRUE(model->update(others, 3));
  EXPECT_EQ(model->version(), 3U);
  const auto fresh = Model::create(config, others, pool).value();
  EXPECT_TRUE(same_bits(alone(*model, prompts[8]), alone(*fresh, prompts[8])));
  Weights parts;
  for (const Parameter& parameter : parameters(config)) parts[parameter.name] = shard_of(parameter, weights.at(parameter.name), model->shard());
  ASSERT_TRUE(model->update_shard(parts, 4));
  EXPECT_FALSE(same_bits(alone(*model, prompts[8]), alone(*fresh, prompts[8])));
}

TEST_P(Invariance, ShardsTakeNewWholeWeightsAlike) {
  const Weights others = initial_weights(config, 6);
  const auto fresh = Model::create(config, others, pool).value();
  const auto results = on_shards<Activation>(config, weights, 4, [&](Model& shard) {
    shard.update(others, 1).value();
    return alone(shard, prompts[9]);
  });
  for (const Activation& result : results) EXPECT_TRUE(same_bits(result, alone(*fresh, prompts[9])));
}

INSTANTIATE_TEST_SUITE_P(Families, Invariance, ::testing::Values(Family::llama, Family::qwen2, Family::qwen3),
                         [](const auto& family) { return std::string(to_string(family.param)); });

TEST(Model, RefusesADegreeThatTheHeadsDoNotDivideBy) {
  const ModelConfig config = config_of(Family::llama);
  auto communicators = collectives::local_communicators(8);
  ThreadPool pool(1);
  const auto model = Model::create(config, initial_weights(config, 1), pool, *communicators[0]);
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().detail.find("1, 2, 4"), std::string::npos) << model.error().detail;
}

TEST(Model, RefusesWeightsThatDoNotFitAndChangesNothing) {
  const ModelConfig config = config_of(Family::llama);
  ThreadPool pool(1);
  Weights weights = initial_weights(config, 1);
  const auto model = Model::create(config, weights, pool).value();
  const Activation before = alone(*model, {1, 2, 3});
  Weights bad = initial_weights(config, 2);
  bad["model.norm.weight"] = Tensor::zeros({7});
  EXPECT_EQ(model->update(bad, 9).error().code, ErrorCode::bad_input);
  EXPECT_EQ(model->version(), 0U);
  EXPECT_TRUE(same_bits(alone(*model, {1, 2, 3}), before));
  weights.erase("lm_head.weight");
  EXPECT_FALSE(Model::create(config, weights, pool));
}

TEST(Model, RefusesTokensAndPositionsBeyondItsOwn) {
  const ModelConfig config = config_of(Family::qwen3);
  ThreadPool pool(1);
  const auto model = Model::create(config, initial_weights(config, 1), pool).value();
  Activation hidden;
  Batch batch;
  batch.add({0, 0, 1}, Tokens{37});
  EXPECT_EQ(model->forward(batch, nullptr, {}, hidden).error().code, ErrorCode::bad_input);
  Batch beyond;
  beyond.add({0, 0, 257}, Tokens(257, 1));
  EXPECT_EQ(model->forward(beyond, nullptr, {}, hidden).error().code, ErrorCode::bad_input);
}

}  // namespace
}  // namespace troupe::models
