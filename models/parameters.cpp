#include "models/parameters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "actors/base/check.hpp"

namespace troupe::models {
namespace {

void add_layer(std::vector<Parameter>& out, const ModelConfig& config, std::uint32_t layer) {
  const std::uint64_t hidden = config.hidden_size, middle = config.intermediate_size, q = config.q_size(), kv = config.kv_size();
  const auto add = [&](std::string_view name, std::vector<std::uint64_t> shape, Split split) {
    out.push_back({fmt::format("model.layers.{}.{}", layer, name), std::move(shape), split});
  };
  add("input_layernorm.weight", {hidden}, Split::whole);
  add("post_attention_layernorm.weight", {hidden}, Split::whole);
  add("self_attn.q_proj.weight", {q, hidden}, Split::rows);
  add("self_attn.k_proj.weight", {kv, hidden}, Split::rows);
  add("self_attn.v_proj.weight", {kv, hidden}, Split::rows);
  add("self_attn.o_proj.weight", {hidden, q}, Split::columns);
  if (config.qkv_bias) {
    add("self_attn.q_proj.bias", {q}, Split::rows);
    add("self_attn.k_proj.bias", {kv}, Split::rows);
    add("self_attn.v_proj.bias", {kv}, Split::rows);
  }
  if (config.output_bias) add("self_attn.o_proj.bias", {hidden}, Split::whole);
  if (config.qk_norm) {
    add("self_attn.q_norm.weight", {config.head_dim}, Split::whole);
    add("self_attn.k_norm.weight", {config.head_dim}, Split::whole);
  }
  add("mlp.gate_proj.weight", {middle, hidden}, Split::rows);
  add("mlp.up_proj.weight", {middle, hidden}, Split::rows);
  add("mlp.down_proj.weight", {hidden, middle}, Split::columns);
}

std::uint64_t count(const std::vector<std::uint64_t>& shape) {
  std::uint64_t elements = 1;
  for (const std::uint64_t extent : shape) elements *= extent;
  return elements;
}

std::vector<std::uint64_t> part_shape(const Parameter& parameter, Shard shard) {
  std::vector<std::uint64_t> shape = parameter.shape;
  if (parameter.split == Split::rows) shape[0] = shard_range(shape[0], shard).size();
  if (parameter.split == Split::columns) shape[1] = shard_range(shape[1], shard).size();
  return shape;
}

/// Calls copy(offset in the whole, offset in the part, length) for each contiguous run.
template <class Copy>
void each_run(const Parameter& parameter, Shard shard, const Copy& copy) {
  const std::uint64_t elements = count(parameter.shape);
  if (parameter.split == Split::whole) return copy(std::uint64_t{0}, std::uint64_t{0}, elements);
  const std::uint64_t width = elements / std::max<std::uint64_t>(1, parameter.shape[0]);
  if (parameter.split == Split::rows) {
    const Range rows = shard_range(parameter.shape[0], shard);
    return copy(rows.begin * width, std::uint64_t{0}, rows.size() * width);
  }
  const Range columns = shard_range(width, shard);
  for (std::uint64_t row = 0; row < parameter.shape[0]; ++row) copy(row * width + columns.begin, row * columns.size(), columns.size());
}

}  // namespace

Range shard_range(std::uint64_t extent, Shard shard) { return {extent * shard.index / shard.degree, extent * (shard.index + 1) / shard.degree}; }

std::vector<Parameter> parameters(const ModelConfig& config) {
  const std::uint64_t vocabulary = config.vocab_size, hidden = config.hidden_size;
  std::vector<Parameter> out;
  out.push_back({"model.embed_tokens.weight", {vocabulary, hidden}, Split::whole});
  out.push_back({"model.norm.weight", {hidden}, Split::whole});
  if (!config.tied_embeddings) out.push_back({"lm_head.weight", {vocabulary, hidden}, Split::rows});
  for (std::uint32_t layer = 0; layer < config.layers; ++layer) add_layer(out, config, layer);
  std::ranges::sort(out, {}, &Parameter::name);
  return out;
}

std::uint64_t parameter_count(const ModelConfig& config) {
  std::uint64_t total = 0;
  for (const Parameter& parameter : parameters(config)) total += count(parameter.shape);
  return total;
}

std::vector<std::uint32_t> allowed_degrees(const ModelConfig& config) {
  std::vector<std::uint32_t> allowed;
  for (const std::uint32_t degree : {1U, 2U, 4U, 8U}) {
    if (config.heads % degree == 0 && config.kv_heads % degree == 0) allowed.push_back(degree);
  }
  return allowed;
}

Result<void> check_degree(const ModelConfig& config, std::uint32_t degree) {
  const std::vector<std::uint32_t> allowed = allowed_degrees(config);
  if (std::ranges::find(allowed, degree) != allowed.end()) return {};
  return Error{ErrorCode::bad_input, fmt::format("tensor_parallel: want a degree that divides {} query and {} key/value heads ({}), got {}", config.heads,
                                                 config.kv_heads, fmt::join(allowed, ", "), degree)};
}

Tensor shard_of(const Parameter& parameter, const Tensor& whole, Shard shard) {
  TROUPE_CHECK(whole.shape == parameter.shape, "a tensor is checked against its parameter before it is split");
  Tensor part = Tensor::zeros(part_shape(parameter, shard));
  part.dtype = whole.dtype;
  each_run(parameter, shard, [&](std::uint64_t from, std::uint64_t to, std::uint64_t length) {
    std::copy_n(whole.data.data() + from, length, part.data.data() + to);
  });
  return part;
}

void place_shard(const Parameter& parameter, const Tensor& part, Shard shard, Tensor& whole) {
  TROUPE_CHECK(whole.shape == parameter.shape && part.shape == part_shape(parameter, shard), "the part is this shard's of this parameter");
  each_run(parameter, shard, [&](std::uint64_t to, std::uint64_t from, std::uint64_t length) {
    std::copy_n(part.data.data() + from, length, whole.data.data() + to);
  });
}

Result<void> check_weights(const ModelConfig& config, const Weights& weights) {
  const std::vector<Parameter> wanted = parameters(config);
  const auto refuse = [](const std::string& name, std::string detail) { return Error{ErrorCode::bad_input, fmt::format("{}: {}", name, detail)}; };
  for (const Parameter& parameter : wanted) {
    const auto found = weights.find(parameter.name);
    if (found == weights.end()) return refuse(parameter.name, fmt::format("want a tensor [{}], got none", fmt::join(parameter.shape, ", ")));
    if (found->second.shape != parameter.shape) {
      return refuse(parameter.name, fmt::format("want shape [{}] by the configuration, got [{}]", fmt::join(parameter.shape, ", "), fmt::join(found->second.shape, ", ")));
    }
  }
  for (const auto& [name, tensor] : weights) {
    if (!std::ranges::binary_search(wanted, name, {}, &Parameter::name)) return refuse(name, "the configuration has no such tensor");
  }
  return {};
}

}  // namespace troupe::models
