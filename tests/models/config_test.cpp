#include "models/config.hpp"

#include <gtest/gtest.h>

#include "models/reference.hpp"

namespace troupe::models {
namespace {

using testing::data_folder;
using testing::reference_names;
using testing::text_of;

constexpr std::string_view kSmall = R"({"model_type": "llama", "vocab_size": 10, "hidden_size": 8, "intermediate_size": 12,
  "num_hidden_layers": 1, "num_attention_heads": 2)";
Result<ModelConfig> parse_small(std::string_view more) { return parse_config(std::string(kSmall) + std::string(more) + "}", "config.json"); }

/// The error's line names the key and what it got.
void expect_refused(std::string_view more, ErrorCode code, std::string_view key, std::string_view got) {
  const Result<ModelConfig> config = parse_small(more);
  ASSERT_FALSE(config) << more;
  EXPECT_EQ(config.error().code, code) << config.error().detail;
  EXPECT_NE(config.error().detail.find(key), std::string::npos) << config.error().detail;
  EXPECT_NE(config.error().detail.find(got), std::string::npos) << config.error().detail;
}

TEST(Config, ReadsTheOlderLayoutAsTheNewer) {
  for (const std::string& name : reference_names()) {
    const auto newer = parse_config(text_of(data_folder() / name / "config.json"), name);
    const auto older = parse_config(text_of(data_folder() / name / "config.old.json"), name);
    ASSERT_TRUE(newer) << newer.error().detail;
    ASSERT_TRUE(older) << older.error().detail;
    EXPECT_EQ(*newer, *older) << name;
  }
}

TEST(Config, ReadsBackWhatItWrites) {
  for (const std::string& name : reference_names()) {
    const ModelConfig config = load_config(data_folder() / name).value();
    const auto again = parse_config(config_json(config), name);
    ASSERT_TRUE(again) << again.error().detail;
    EXPECT_EQ(*again, config) << name << "\n" << config_json(config);
  }
}

TEST(Config, TakesWhatTheFamilyImplies) {
  const ModelConfig qwen2 = load_config(data_folder() / "qwen2").value();
  EXPECT_TRUE(qwen2.qkv_bias && !qwen2.output_bias && !qwen2.qk_norm && qwen2.tied_embeddings);
  EXPECT_EQ(qwen2.head_dim, 8U);
  const ModelConfig qwen3 = load_config(data_folder() / "qwen3").value();
  EXPECT_TRUE(!qwen3.qkv_bias && qwen3.qk_norm);
  EXPECT_EQ(qwen3.head_dim, 16U);
  const ModelConfig llama3 = load_config(data_folder() / "llama3").value();
  EXPECT_EQ(llama3.eos_token_ids, (std::vector<std::uint32_t>{280, 281, 283}));
  EXPECT_EQ(llama3.rope.kind, RopeKind::llama3);
  EXPECT_EQ(llama3.rope.original_positions_max, 40U);
}

TEST(Config, FillsInTheLibrarysDefaults) {
  const ModelConfig config = parse_small("").value();
  EXPECT_EQ(config.kv_heads, 2U);
  EXPECT_EQ(config.head_dim, 4U);
  EXPECT_EQ(config.rms_norm_eps, 1e-6F);
  EXPECT_EQ(config.rope.theta, 10000.0);
  EXPECT_FALSE(config.tied_embeddings);
}

TEST(Config, RefusesOtherFamiliesAndStepsByName) {
  EXPECT_EQ(parse_config(R"({"model_type": "gemma3_text"})", "c").error().code, ErrorCode::unsupported);
  EXPECT_NE(parse_config(R"({"model_type": "gemma3_text"})", "c").error().detail.find("gemma3_text"), std::string::npos);
  expect_refused(R"(, "rope_scaling": {"type": "dynamic", "factor": 2.0})", ErrorCode::unsupported, "type", "dynamic");
  expect_refused(R"(, "rope_parameters": {"rope_type": "longrope"})", ErrorCode::unsupported, "rope_type", "longrope");
  expect_refused(R"(, "hidden_act": "gelu")", ErrorCode::unsupported, "hidden_act", "gelu");
  expect_refused(R"(, "mlp_bias": true)", ErrorCode::unsupported, "mlp_bias", "true");
  expect_refused(R"(, "layer_types": ["sliding_attention"])", ErrorCode::unsupported, "layer_types", "sliding");
  expect_refused(R"(, "use_sliding_window": true)", ErrorCode::unsupported, "use_sliding_window", "true");
  expect_refused(R"(, "quantization_config": {})", ErrorCode::unsupported, "quantization_config", "{}");
  expect_refused(R"(, "torch_dtype": "float64")", ErrorCode::unsupported, "torch_dtype", "float64");
}

TEST(Config, NamesTheKeyOfABadValue) {
  expect_refused(R"(, "head_dim": 5)", ErrorCode::bad_input, "head_dim", "5");
  expect_refused(R"(, "head_dim": 0)", ErrorCode::bad_input, "head_dim", "0");
  expect_refused(R"(, "num_key_value_heads": 3)", ErrorCode::bad_input, "num_key_value_heads", "3");
  expect_refused(R"(, "max_position_embeddings": -1)", ErrorCode::bad_input, "max_position_embeddings", "-1");
  expect_refused(R"(, "rms_norm_eps": 0)", ErrorCode::bad_input, "rms_norm_eps", "0");
  expect_refused(R"(, "rms_norm_eps": "x")", ErrorCode::bad_input, "rms_norm_eps", "x");
  expect_refused(R"(, "tie_word_embeddings": 1)", ErrorCode::bad_input, "tie_word_embeddings", "1");
  expect_refused(R"(, "eos_token_id": [1, 10])", ErrorCode::bad_input, "eos_token_id", "10");
  expect_refused(R"(, "rope_theta": 0)", ErrorCode::bad_input, "rope_theta", "0");
  expect_refused(R"(, "rope_scaling": {"type": "linear"})", ErrorCode::bad_input, "factor", "nothing");
  expect_refused(R"(, "rope_scaling": {"type": "yarn", "factor": 4, "beta_fast": 1, "beta_slow": 2})", ErrorCode::bad_input, "beta_fast", "1");
}

TEST(Config, RefusesEveryTruncation) {
  const std::string text = text_of(data_folder() / "llama3/config.json");
  const std::size_t end = text.find_last_of('}');
  for (std::size_t length = 0; length <= end; ++length) EXPECT_FALSE(parse_config(text.substr(0, length), "config.json")) << length;
}

TEST(Config, TakesEosFromTheGenerationConfig) {
  const testing::ScratchFolder folder;
  std::filesystem::copy_file(data_folder() / "llama/config.json", folder.path() / "config.json");
  EXPECT_EQ(load_config(folder.path())->eos_token_ids, std::vector<std::uint32_t>{2});
  std::ofstream(folder.path() / "generation_config.json") << R"({"eos_token_id": [4, 5]})";
  EXPECT_EQ(load_config(folder.path())->eos_token_ids, (std::vector<std::uint32_t>{4, 5}));
  std::ofstream(folder.path() / "generation_config.json") << R"({"eos_token_id": "x"})";
  EXPECT_FALSE(load_config(folder.path()));
}

}  // namespace
}  // namespace troupe::models
