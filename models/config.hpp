#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/base/error.hpp"
#include "actors/base/fields.hpp"
#include "models/tensor.hpp"

namespace troupe::models {

/// The families are configurations of one decoder; the name decides which tensors and keys there are.
enum class Family : std::uint8_t { llama = 0, qwen2 = 1, qwen3 = 2 };
std::string_view to_string(Family family);  ///< config.json's model_type

enum class RopeKind : std::uint8_t { standard = 0, linear = 1, llama3 = 2, yarn = 3 };
std::string_view to_string(RopeKind kind);  ///< config.json's rope_type

/// How positions turn queries and keys (arXiv:2104.09864, halves rotated as Hugging Face does).
struct Rope {
  RopeKind kind = RopeKind::standard;
  double theta = 10000.0;
  double factor = 1.0;                         ///< of linear, llama3, yarn
  double low_freq_factor = 1.0;                ///< of llama3
  double high_freq_factor = 4.0;
  std::uint32_t original_positions_max = 0;    ///< of llama3, yarn
  double beta_fast = 32.0;                     ///< of yarn
  double beta_slow = 1.0;
  std::optional<double> attention_factor;      ///< of yarn; absent: 0.1 ln(factor) + 1
  bool truncate = true;                        ///< of yarn: the ramp's ends are whole dimensions
  TROUPE_FIELDS(kind, theta, factor, low_freq_factor, high_freq_factor, original_positions_max, beta_fast, beta_slow, attention_factor, truncate)
  bool operator==(const Rope&) const = default;
};

/// A decoder-only transformer: RMSNorm, rotary positions, grouped queries, SwiGLU.
struct ModelConfig {
  Family family = Family::llama;
  std::uint32_t vocab_size = 0;
  std::uint32_t hidden_size = 0;
  std::uint32_t intermediate_size = 0;
  std::uint32_t layers = 0;
  std::uint32_t heads = 0;      ///< query heads
  std::uint32_t kv_heads = 0;   ///< divides heads; query head h reads kv head h / (heads / kv_heads)
  std::uint32_t head_dim = 0;   ///< even
  std::uint32_t positions_max = 2048;
  float rms_norm_eps = 1e-6F;
  bool tied_embeddings = false;
  bool qkv_bias = false;
  bool output_bias = false;     ///< of o_proj
  bool qk_norm = false;         ///< RMSNorm over head_dim of q and k before rope
  Rope rope;
  Dtype dtype = Dtype::float32;
  double initializer_range = 0.02;
  std::optional<std::uint32_t> bos_token_id;
  std::vector<std::uint32_t> eos_token_ids;
  TROUPE_FIELDS(family, vocab_size, hidden_size, intermediate_size, layers, heads, kv_heads, head_dim, positions_max, rms_norm_eps, tied_embeddings,
                qkv_bias, output_bias, qk_norm, rope, dtype, initializer_range, bos_token_id, eos_token_ids)
  bool operator==(const ModelConfig&) const = default;

  std::uint64_t q_size() const { return std::uint64_t{heads} * head_dim; }
  std::uint64_t kv_size() const { return std::uint64_t{kv_heads} * head_dim; }
};

/// The text of config.json, in the layout of transformers 5 (rope_parameters) or 4 (rope_theta, rope_scaling).
/// Errors: bad_input for a missing key or a bad value (names the key, what it got, what is allowed); unsupported for a family,
/// rope kind, activation, sliding window or bias of the MLP that this build does not compute. `where` is the file's name.
Result<ModelConfig> parse_config(std::string_view json, std::string_view where);

/// config.json in the layout of transformers 5; parse_config gives the same ModelConfig back.
std::string config_json(const ModelConfig& config);

/// FOLDER/config.json, and generation_config.json's eos_token_id where it is (it wins, as in Hugging Face's generate).
Result<ModelConfig> load_config(const std::filesystem::path& folder);

/// Says whether sizes fit together (positive, even head_dim, kv_heads divides heads, …), naming the key. parse_config calls it.
Result<void> check_config(const ModelConfig& config, std::string_view where);

}  // namespace troupe::models
