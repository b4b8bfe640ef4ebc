#include "models/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>

#include "models/files.hpp"
#include "models/json_reader.hpp"

namespace troupe::models {
namespace {

constexpr std::array<std::string_view, 3> kFamilies = {"llama", "qwen2", "qwen3"};
constexpr std::array<std::string_view, 3> kArchitectures = {"LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM"};
constexpr std::array<std::string_view, 4> kRopeKinds = {"default", "linear", "llama3", "yarn"};

template <std::size_t N>
std::optional<std::uint8_t> index_of(const std::array<std::string_view, N>& names, std::string_view name) {
  for (std::uint8_t i = 0; i < N; ++i) {
    if (names[i] == name) return i;
  }
  return std::nullopt;
}

Family read_family(JsonReader& reader) {
  const std::string name = reader.text("model_type");
  const auto index = index_of(kFamilies, name);
  if (!index) reader.fail("model_type", "one of llama, qwen2, qwen3: this build computes no others", ErrorCode::unsupported);
  return static_cast<Family>(index.value_or(0));
}

/// `reader` stands on rope_parameters or rope_scaling; theta and the model's positions come from outside it.
Rope read_scaling(JsonReader& reader, double theta, std::uint32_t positions_max) {
  Rope rope;
  rope.theta = reader.number("rope_theta", theta);
  const std::string_view key = reader.has("rope_type") ? "rope_type" : "type";
  const auto kind = index_of(kRopeKinds, reader.text(key, "default"));
  if (!kind) reader.fail(key, "one of default, linear, llama3, yarn: this build computes no others", ErrorCode::unsupported);
  rope.kind = static_cast<RopeKind>(kind.value_or(0));
  if (rope.kind == RopeKind::standard) return rope;
  rope.factor = reader.number("factor");
  if (rope.factor < 1.0) reader.fail("factor", "a number of at least 1");
  if (rope.kind == RopeKind::linear) return rope;
  rope.original_positions_max = reader.whole("original_max_position_embeddings", positions_max);
  if (rope.original_positions_max == 0) reader.fail("original_max_position_embeddings", "a whole number of at least 1");
  if (rope.kind == RopeKind::llama3) {
    rope.low_freq_factor = reader.number("low_freq_factor");
    rope.high_freq_factor = reader.number("high_freq_factor");
    if (rope.low_freq_factor <= 0.0) reader.fail("low_freq_factor", "a number above 0");
    if (rope.high_freq_factor <= rope.low_freq_factor) reader.fail("high_freq_factor", "a number above low_freq_factor");
    return rope;
  }
  for (const char* other : {"mscale", "mscale_all_dim"}) {
    if (reader.has(other)) reader.fail(other, "nothing: this build takes yarn's attention_factor alone", ErrorCode::unsupported);
  }
  rope.beta_fast = reader.number("beta_fast", 32.0);
  rope.beta_slow = reader.number("beta_slow", 1.0);
  if (rope.beta_slow <= 0.0) reader.fail("beta_slow", "a number above 0");
  if (rope.beta_fast < rope.beta_slow) reader.fail("beta_fast", "a number of at least beta_slow");
  if (reader.has("attention_factor")) rope.attention_factor = reader.number("attention_factor");
  if (rope.attention_factor && *rope.attention_factor <= 0.0) reader.fail("attention_factor", "a number above 0");
  rope.truncate = reader.boolean("truncate", true);
  return rope;
}

Result<Rope> read_rope(JsonReader& reader, std::uint32_t positions_max) {
  const double theta = reader.number("rope_theta", 10000.0);
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const boost::json::value* found = reader.find(key);
    if (found == nullptr) continue;
    if (!found->is_object()) {
      reader.fail(key, "an object");
      break;
    }
    JsonReader scaling(found->get_object(), fmt::format("{}: {}", reader.where(), key));
    Rope rope = read_scaling(scaling, theta, positions_max);
    if (rope.theta <= 1.0) scaling.fail("rope_theta", "a number above 1");
    if (scaling.error()) return *scaling.error();
    return rope;
  }
  if (theta <= 1.0) reader.fail("rope_theta", "a number above 1");
  Rope rope;
  rope.theta = theta;
  return rope;
}

Dtype read_dtype(JsonReader& reader) {
  const std::string_view key = reader.has("dtype") ? "dtype" : "torch_dtype";
  const std::string name = reader.text(key, "float32");
  if (name == "bfloat16") return Dtype::bfloat16;
  // float16 files are widened on load and stay float32.
  if (name != "float32" && name != "float16") reader.fail(key, "float32, bfloat16 or float16", ErrorCode::unsupported);
  return Dtype::float32;
}

std::optional<std::vector<std::uint32_t>> read_ids(JsonReader& reader, std::string_view key) {
  const boost::json::value* found = reader.find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_array()) return std::vector{reader.whole(key)};
  std::vector<std::uint32_t> ids;
  for (const boost::json::value& element : found->get_array()) {
    boost::json::object single;
    single["element"] = element;
    JsonReader inner(single, reader.where());
    ids.push_back(inner.whole("element"));
    if (inner.error()) reader.fail(key, "token ids");
  }
  return ids;
}

void refuse_what_is_not_computed(JsonReader& reader) {
  const auto refuse = [&](std::string_view key, std::string_view wanted) { reader.fail(key, wanted, ErrorCode::unsupported); };
  if (reader.text("hidden_act", "silu") != "silu") refuse("hidden_act", "silu");
  if (reader.boolean("mlp_bias", false)) refuse("mlp_bias", "false");
  if (reader.boolean("use_sliding_window", false)) refuse("use_sliding_window", "false");
  if (reader.has("quantization_config")) refuse("quantization_config", "nothing: weights in float32, bfloat16 or float16");
  if (reader.number("partial_rotary_factor", 1.0) != 1.0) refuse("partial_rotary_factor", "1");
  const boost::json::value* types = reader.find("layer_types");
  if (types == nullptr) return;
  if (!types->is_array()) return refuse("layer_types", "an array");
  for (const boost::json::value& type : types->get_array()) {
    if (type != "full_attention") refuse("layer_types", "full_attention for every layer");
  }
}

}  // namespace

std::string_view to_string(Family family) { return kFamilies.at(static_cast<std::size_t>(family)); }
std::string_view to_string(RopeKind kind) { return kRopeKinds.at(static_cast<std::size_t>(kind)); }

Result<void> check_config(const ModelConfig& config, std::string_view where) {
  const auto refuse = [&](std::string_view key, std::string_view wanted, auto got) {
    return Error{ErrorCode::bad_input, fmt::format("{}: {}: want {}, got {}", where, key, wanted, got)};
  };
  constexpr std::uint32_t kLimit = 1U << 24;  // products of two sizes stay far from overflow
  const std::pair<std::string_view, std::uint32_t> sizes[] = {
      {"vocab_size", config.vocab_size}, {"hidden_size", config.hidden_size}, {"intermediate_size", config.intermediate_size},
      {"num_hidden_layers", config.layers}, {"num_attention_heads", config.heads}, {"num_key_value_heads", config.kv_heads},
      {"head_dim", config.head_dim}, {"max_position_embeddings", config.positions_max}};
  for (const auto& [key, size] : sizes) {
    if (size == 0 || size > kLimit) return refuse(key, fmt::format("1 to {}", kLimit), size);
  }
  if (config.layers > 4096) return refuse("num_hidden_layers", "1 to 4096", config.layers);
  if (config.heads > 65536) return refuse("num_attention_heads", "1 to 65536", config.heads);
  if (config.head_dim > 4096 || config.head_dim % 2 != 0) return refuse("head_dim", "an even number of 2 to 4096", config.head_dim);
  if (config.heads % config.kv_heads != 0) return refuse("num_key_value_heads", fmt::format("a divisor of num_attention_heads {}", config.heads), config.kv_heads);
  if (!(config.rms_norm_eps > 0.0F && config.rms_norm_eps < 1.0F)) return refuse("rms_norm_eps", "a number above 0 and below 1", config.rms_norm_eps);
  for (const std::uint32_t id : config.eos_token_ids) {
    if (id >= config.vocab_size) return refuse("eos_token_id", fmt::format("ids below vocab_size {}", config.vocab_size), id);
  }
  return {};
}

Result<ModelConfig> parse_config(std::string_view json, std::string_view where) {
  Result<boost::json::value> parsed = parse_json(json, where, ErrorCode::bad_input);
  if (!parsed) return parsed.error();
  if (!parsed->is_object()) return Error{ErrorCode::bad_input, fmt::format("{}: want an object, got {}", where, brief(*parsed))};
  JsonReader reader(parsed->get_object(), std::string(where));

  ModelConfig config;
  config.family = read_family(reader);
  if (reader.error()) return *reader.error();
  refuse_what_is_not_computed(reader);
  const bool llama = config.family == Family::llama;
  config.vocab_size = reader.whole("vocab_size");
  config.hidden_size = reader.whole("hidden_size");
  config.intermediate_size = reader.whole("intermediate_size");
  config.layers = reader.whole("num_hidden_layers");
  config.heads = reader.whole("num_attention_heads");
  config.kv_heads = llama ? reader.whole("num_key_value_heads", config.heads) : reader.whole("num_key_value_heads");
  // Qwen3's default is the library's, not hidden / heads.
  const std::uint32_t per_head = config.heads == 0 ? 0 : config.hidden_size / config.heads;
  config.head_dim = reader.whole("head_dim", config.family == Family::qwen3 ? 128 : per_head);
  config.positions_max = reader.whole("max_position_embeddings", llama ? 2048 : 32768);
  config.rms_norm_eps = static_cast<float>(reader.number("rms_norm_eps", 1e-6));
  config.tied_embeddings = reader.boolean("tie_word_embeddings", false);
  const bool bias = reader.boolean("attention_bias", false);
  config.qkv_bias = config.family == Family::qwen2 || bias;
  config.output_bias = config.family != Family::qwen2 && bias;
  config.qk_norm = config.family == Family::qwen3;
  config.dtype = read_dtype(reader);
  config.initializer_range = reader.number("initializer_range", 0.02);
  if (reader.has("bos_token_id")) config.bos_token_id = reader.whole("bos_token_id");
  config.eos_token_ids = read_ids(reader, "eos_token_id").value_or(std::vector<std::uint32_t>{});
  Result<Rope> rope = read_rope(reader, config.positions_max);
  if (!rope) return rope.error();
  config.rope = *rope;
  if (reader.error()) return *reader.error();
  if (Result<void> checked = check_config(config, where); !checked) return checked.error();
  return config;
}

std::string config_json(const ModelConfig& config) {
  const Rope& rope = config.rope;
  std::string scaling;
  const auto add = [&](std::string_view key, double value) { scaling += fmt::format(",\n    \"{}\": {}", key, value); };
  if (rope.kind != RopeKind::standard) add("factor", rope.factor);
  if (rope.kind == RopeKind::llama3 || rope.kind == RopeKind::yarn) add("original_max_position_embeddings", rope.original_positions_max);
  if (rope.kind == RopeKind::llama3) {
    add("low_freq_factor", rope.low_freq_factor);
    add("high_freq_factor", rope.high_freq_factor);
  }
  if (rope.kind == RopeKind::yarn) {
    add("beta_fast", rope.beta_fast);
    add("beta_slow", rope.beta_slow);
    if (rope.attention_factor) add("attention_factor", *rope.attention_factor);
    scaling += fmt::format(",\n    \"truncate\": {}", rope.truncate);
  }
  const auto ids = [](const std::vector<std::uint32_t>& list) {
    if (list.empty()) return std::string("null");
    return list.size() == 1 ? std::to_string(list.front()) : fmt::format("[{}]", fmt::join(list, ", "));
  };
  std::string out = "{\n";
  const auto line = [&](std::string_view key, std::string_view value) { out += fmt::format("  \"{}\": {},\n", key, value); };
  const auto number = [&](std::string_view key, auto value) { line(key, fmt::format("{}", value)); };
  line("architectures", fmt::format("[\"{}\"]", kArchitectures.at(static_cast<std::size_t>(config.family))));
  if (config.family != Family::qwen2) number("attention_bias", config.qkv_bias);
  line("bos_token_id", config.bos_token_id ? std::to_string(*config.bos_token_id) : "null");
  line("dtype", config.dtype == Dtype::bfloat16 ? "\"bfloat16\"" : "\"float32\"");
  line("eos_token_id", ids(config.eos_token_ids));
  number("head_dim", config.head_dim);
  line("hidden_act", "\"silu\"");
  number("hidden_size", config.hidden_size);
  number("initializer_range", config.initializer_range);
  number("intermediate_size", config.intermediate_size);
  number("max_position_embeddings", config.positions_max);
  line("model_type", fmt::format("\"{}\"", to_string(config.family)));
  number("num_attention_heads", config.heads);
  number("num_hidden_layers", config.layers);
  number("num_key_value_heads", config.kv_heads);
  number("rms_norm_eps", config.rms_norm_eps);
  line("rope_parameters", fmt::format("{{\n    \"rope_type\": \"{}\",\n    \"rope_theta\": {}{}\n  }}", to_string(rope.kind), rope.theta, scaling));
  number("tie_word_embeddings", config.tied_embeddings);
  out += fmt::format("  \"vocab_size\": {}\n}}\n", config.vocab_size);
  return out;
}

Result<ModelConfig> load_config(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / "config.json";
  Result<std::string> text = read_text(file);
  if (!text) return text.error();
  Result<ModelConfig> config = parse_config(*text, file.string());
  const std::filesystem::path generation = folder / "generation_config.json";
  std::error_code ignored;
  if (!config || !std::filesystem::exists(generation, ignored)) return config;
  text = read_text(generation);
  if (!text) return text.error();
  Result<boost::json::value> parsed = parse_json(*text, generation.string(), ErrorCode::bad_input);
  if (!parsed) return parsed.error();
  if (!parsed->is_object()) return Error{ErrorCode::bad_input, fmt::format("{}: want an object, got {}", generation.string(), brief(*parsed))};
  JsonReader reader(parsed->get_object(), generation.string());
  if (auto eos = read_ids(reader, "eos_token_id")) config->eos_token_ids = *eos;
  if (reader.error()) return *reader.error();
  if (Result<void> checked = check_config(*config, generation.string()); !checked) return checked.error();
  return config;
}

}  // namespace troupe::models
