#include "models/model.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <optional>

#include "actors/base/check.hpp"
#include "models/kernels/activation.hpp"
#include "models/kernels/linear.hpp"
#include "models/kernels/norm.hpp"
#include "models/kernels/packed_matrix.hpp"
#include "models/kernels/rope.hpp"
#include "models/rope_frequencies.hpp"

namespace troupe::models {
namespace {

/// One layer's weights, ready for the kernels. Biases and q/k norms are empty where the configuration has none.
struct Layer {
  PackedMatrix q, k, v, o, gate, up, down;
  std::vector<float> q_bias, k_bias, v_bias, o_bias;
  std::vector<float> input_norm, post_norm, q_norm, k_norm;
};

/// Sizes of what a shard computes.
struct Widths {
  std::size_t hidden = 0, q = 0, kv = 0, mlp = 0, vocabulary = 0;
};

}  // namespace

struct Model::State {
  ModelConfig config;
  Shard shard;
  ThreadPool& pool;
  collectives::Communicator* communicator;
  std::vector<Parameter> all;  ///< ascending by name
  Widths width;
  AttentionShape attention;
  RopeFrequencies frequencies;
  std::optional<RopeTable> table;
  std::vector<Layer> layers;
  std::vector<float> embedding;  ///< [vocab_size, hidden], whole on every shard
  std::vector<float> norm;
  PackedMatrix output;           ///< the shard's rows of lm_head, or of a tied embedding
  std::uint64_t version = 0;
  // Reused from call to call.
  LayerTape scratch;
  std::vector<std::uint32_t> positions;
  Activation stream, branch, chosen;

  State(const ModelConfig& model, Shard part, ThreadPool& threads, collectives::Communicator* members)
      : config(model), shard(part), pool(threads), communicator(members), all(parameters(model)), frequencies(rope_frequencies(model.rope, model.head_dim)) {
    width = {.hidden = config.hidden_size,
             .q = shard_range(config.q_size(), shard).size(),
             .kv = shard_range(config.kv_size(), shard).size(),
             .mlp = shard_range(config.intermediate_size, shard).size(),
             .vocabulary = shard_range(config.vocab_size, shard).size()};
    attention = {.heads = config.heads / shard.degree,
                 .kv_heads = config.kv_heads / shard.degree,
                 .head_dim = config.head_dim,
                 .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(config.head_dim))),
                 .window = 0};
    layers.resize(config.layers);
  }

  SegmentCuts whole_cuts(std::size_t size) const { return SegmentCuts::of(size); }
  SegmentCuts shard_cuts(std::size_t size) const { return SegmentCuts::shard(size, shard.index, shard.degree); }

  void place(std::string_view name, std::span<const float> data);
  void place_in_layer(Layer& layer, std::string_view name, std::span<const float> data);
  Result<void> sum_over_shards(Activation& branch_rows);
  Result<void> check(const Batch& batch, const KvCache* cache) const;
  void project_queries(Layer& layer, LayerTape& tape, std::size_t rows);
  std::vector<AttentionSpan> store(const Batch& batch, KvCache* cache, std::size_t layer, LayerTape& tape) const;
  Result<void> attend(const Batch& batch, KvCache* cache, std::size_t index, LayerTape& tape);
  Result<void> feed_forward(Layer& layer, LayerTape& tape, std::size_t rows);
};

/// A shard's part of one parameter goes where the kernels read it.
void Model::State::place(std::string_view name, std::span<const float> data) {
  const auto copy = [&](std::vector<float>& to) { to.assign(data.begin(), data.end()); };
  if (name == "model.norm.weight") return copy(norm);
  if (name == "lm_head.weight") return output.pack(pool, data, width.vocabulary, whole_cuts(width.hidden));
  if (name == "model.embed_tokens.weight") {
    copy(embedding);
    const Range rows = shard_range(config.vocab_size, shard);
    if (config.tied_embeddings) output.pack(pool, data.subspan(rows.begin * width.hidden, rows.size() * width.hidden), rows.size(), whole_cuts(width.hidden));
    return;
  }
  constexpr std::string_view kPrefix = "model.layers.";
  TROUPE_CHECK(name.starts_with(kPrefix), "every other parameter is a layer's");
  name.remove_prefix(kPrefix.size());
  const std::size_t dot = name.find('.');
  place_in_layer(layers.at(std::stoul(std::string(name.substr(0, dot)))), name.substr(dot + 1), data);
}

void Model::State::place_in_layer(Layer& layer, std::string_view name, std::span<const float> data) {
  struct Vector {
    std::string_view name;
    std::vector<float>* to;
  };
  const Vector vectors[] = {{"input_layernorm.weight", &layer.input_norm}, {"post_attention_layernorm.weight", &layer.post_norm},
                            {"self_attn.q_norm.weight", &layer.q_norm}, {"self_attn.k_norm.weight", &layer.k_norm},
                            {"self_attn.q_proj.bias", &layer.q_bias}, {"self_attn.k_proj.bias", &layer.k_bias},
                            {"self_attn.v_proj.bias", &layer.v_bias}, {"self_attn.o_proj.bias", &layer.o_bias}};
  for (const Vector& vector : vectors) {
    if (vector.name == name) return vector.to->assign(data.begin(), data.end());
  }
  struct Matrix {
    std::string_view name;
    PackedMatrix* to;
    std::size_t outputs;
    SegmentCuts cuts;
  };
  const Matrix matrices[] = {{"self_attn.q_proj.weight", &layer.q, width.q, whole_cuts(width.hidden)},
                             {"self_attn.k_proj.weight", &layer.k, width.kv, whole_cuts(width.hidden)},
                             {"self_attn.v_proj.weight", &layer.v, width.kv, whole_cuts(width.hidden)},
                             {"self_attn.o_proj.weight", &layer.o, width.hidden, shard_cuts(config.q_size())},
                             {"mlp.gate_proj.weight", &layer.gate, width.mlp, whole_cuts(width.hidden)},
                             {"mlp.up_proj.weight", &layer.up, width.mlp, whole_cuts(width.hidden)},
                             {"mlp.down_proj.weight", &layer.down, width.hidden, shard_cuts(config.intermediate_size)}};
  const auto* matrix = std::ranges::find(matrices, name, &Matrix::name);
  TROUPE_CHECK(matrix != std::end(matrices), "parameters() names nothing else");
  matrix->to->pack(pool, data, matrix->outputs, matrix->cuts);
}

Result<void> Model::State::sum_over_shards(Activation& branch_rows) {
  if (communicator == nullptr) return {};
  return communicator->all_reduce_sum(std::span(branch_rows));
}

Result<void> Model::State::check(const Batch& batch, const KvCache* cache) const {
  TROUPE_CHECK(!batch.spans.empty(), "a batch has at least one span");
  std::size_t rows = 0;
  for (const SequenceSpan& span : batch.spans) {
    const std::uint64_t end = std::uint64_t{span.first_position} + span.length;
    TROUPE_CHECK(span.length > 0, "a span has at least one row");
    TROUPE_CHECK(cache != nullptr || span.first_position == 0, "without a cache a span is a whole sequence");
    TROUPE_CHECK(cache == nullptr || (span.sequence < cache->slots() && end <= cache->length_max()), "a span fits its slot of the cache");
    if (end > config.positions_max) {
      return Error{ErrorCode::bad_input, fmt::format("sequence: want at most max_position_embeddings {} positions, got {}", config.positions_max, end)};
    }
    rows += span.length;
  }
  TROUPE_CHECK(rows == batch.tokens.size(), "the spans cover the rows");
  const auto bad = std::ranges::find_if(batch.tokens, [&](TokenId id) { return id >= config.vocab_size; });
  if (bad == batch.tokens.end()) return {};
  return Error{ErrorCode::bad_input, fmt::format("token id: want below the vocabulary's size {}, got {}", config.vocab_size, *bad)};
}

/// q, k, v of the normed rows, with bias, q/k norm and rope.
void Model::State::project_queries(Layer& layer, LayerTape& tape, std::size_t rows) {
  const bool normed = config.qk_norm;
  tape.q.resize(rows * width.q);
  tape.k.resize(rows * width.kv);
  tape.v.resize(rows * width.kv);
  if (normed) {
    tape.q_projected.resize(tape.q.size());
    tape.k_projected.resize(tape.k.size());
    tape.q_inverse_rms.resize(rows * attention.heads);
    tape.k_inverse_rms.resize(rows * attention.kv_heads);
  }
  const auto apply = [&](const PackedMatrix& weight, const std::vector<float>& bias, Activation& out) {
    linear(pool, out, tape.attention_input, rows, weight);
    if (!bias.empty()) add_bias(pool, out, bias, rows);
  };
  apply(layer.q, layer.q_bias, normed ? tape.q_projected : tape.q);
  apply(layer.k, layer.k_bias, normed ? tape.k_projected : tape.k);
  apply(layer.v, layer.v_bias, tape.v);
  if (normed) {
    rms_norm(pool, tape.q, tape.q_projected, layer.q_norm, config.rms_norm_eps, tape.q_inverse_rms);
    rms_norm(pool, tape.k, tape.k_projected, layer.k_norm, config.rms_norm_eps, tape.k_inverse_rms);
  }
  rope(pool, tape.q, positions, attention.heads, *table);
  rope(pool, tape.k, positions, attention.kv_heads, *table);
}

/// Keys and values of the batch go to the cache, or to blocks of the tape when there is none.
std::vector<AttentionSpan> Model::State::store(const Batch& batch, KvCache* cache, std::size_t layer, LayerTape& tape) const {
  std::vector<AttentionSpan> spans;
  if (cache == nullptr) {
    std::size_t floats = 0;
    for (const SequenceSpan& span : batch.spans) floats += key_value_floats(attention, span.length);
    tape.key_blocks.resize(floats);
    tape.value_blocks.resize(floats);
    spans = whole_sequence_spans(batch, attention, tape.key_blocks, tape.value_blocks);
  }
  std::size_t row = 0;
  std::size_t block = 0;
  for (const SequenceSpan& span : batch.spans) {
    float* keys = cache != nullptr ? cache->keys(layer, span.sequence) : tape.key_blocks.data() + block;
    float* values = cache != nullptr ? cache->values(layer, span.sequence) : tape.value_blocks.data() + block;
    const auto part = [&](const Activation& rows) { return std::span(rows).subspan(row * width.kv, span.length * width.kv); };
    store_key_values(attention, keys, values, part(tape.k), part(tape.v), span.first_position, span.length);
    if (cache != nullptr) spans.push_back({row, span.first_position, span.length, {keys, values}});
    row += span.length;
    block += key_value_floats(attention, span.length);
  }
  return spans;
}

/// stream += o(attention(norm(stream)))
Result<void> Model::State::attend(const Batch& batch, KvCache* cache, std::size_t index, LayerTape& tape) {
  Layer& layer = layers[index];
  const std::size_t rows = batch.rows();
  tape.attention_input.resize(stream.size());
  tape.attention_inverse_rms.resize(rows);
  rms_norm(pool, tape.attention_input, stream, layer.input_norm, config.rms_norm_eps, tape.attention_inverse_rms);
  project_queries(layer, tape, rows);
  const std::vector<AttentionSpan> spans = store(batch, cache, index, tape);
  tape.attention.resize(tape.q.size());
  tape.softmax.resize(rows * attention.heads);
  models::attention(pool, attention, spans, tape.attention, tape.q, tape.softmax);
  branch.resize(stream.size());
  linear(pool, branch, tape.attention, rows, layer.o);
  if (Result<void> summed = sum_over_shards(branch); !summed) return summed;
  if (!layer.o_bias.empty()) add_bias(pool, branch, layer.o_bias, rows);
  add(pool, stream, branch);
  return {};
}

/// stream += down(silu(gate(norm(stream))) · up(norm(stream)))
Result<void> Model::State::feed_forward(Layer& layer, LayerTape& tape, std::size_t rows) {
  tape.mlp_input.resize(stream.size());
  tape.mlp_inverse_rms.resize(rows);
  rms_norm(pool, tape.mlp_input, stream, layer.post_norm, config.rms_norm_eps, tape.mlp_inverse_rms);
  tape.gate.resize(rows * width.mlp);
  tape.up.resize(rows * width.mlp);
  tape.product.resize(rows * width.mlp);
  linear(pool, tape.gate, tape.mlp_input, rows, layer.gate);
  linear(pool, tape.up, tape.mlp_input, rows, layer.up);
  swiglu(pool, tape.product, tape.gate, tape.up);
  branch.resize(stream.size());
  linear(pool, branch, tape.product, rows, layer.down);
  if (Result<void> summed = sum_over_shards(branch); !summed) return summed;
  add(pool, stream, branch);
  return {};
}

std::vector<AttentionSpan> whole_sequence_spans(const Batch& batch, const AttentionShape& shape, const std::vector<float>& key_blocks,
                                                const std::vector<float>& value_blocks) {
  std::vector<AttentionSpan> spans;
  std::size_t row = 0;
  std::size_t block = 0;
  for (const SequenceSpan& span : batch.spans) {
    spans.push_back({row, 0, span.length, {key_blocks.data() + block, value_blocks.data() + block}});
    row += span.length;
    block += key_value_floats(shape, span.length);
  }
  return spans;
}

std::vector<AttentionSpan> Tape::attention_spans(std::size_t layer) const {
  return whole_sequence_spans(batch, attention_shape, layers.at(layer).key_blocks, layers.at(layer).value_blocks);
}

Model::Model(std::unique_ptr<State> state) : state_(std::move(state)) {}
Model::~Model() = default;

Result<std::unique_ptr<Model>> Model::create(const ModelConfig& config, const Weights& weights, ThreadPool& pool) {
  if (Result<void> checked = check_config(config, "model"); !checked) return checked.error();
  if (Result<void> checked = check_weights(config, weights); !checked) return checked.error();
  std::unique_ptr<Model> model(new Model(std::make_unique<State>(config, Shard{}, pool, nullptr)));
  if (Result<void> placed = model->update(weights, 0); !placed) return placed.error();
  return model;
}

Result<std::unique_ptr<Model>> Model::create(const ModelConfig& config, const Weights& weights, ThreadPool& pool, collectives::Communicator& communicator) {
  if (Result<void> checked = check_config(config, "model"); !checked) return checked.error();
  if (Result<void> checked = check_degree(config, communicator.size()); !checked) return checked.error();
  if (Result<void> checked = check_weights(config, weights); !checked) return checked.error();
  const Shard shard{.degree = communicator.size(), .index = communicator.member()};
  std::unique_ptr<Model> model(new Model(std::make_unique<State>(config, shard, pool, shard.degree == 1 ? nullptr : &communicator)));
  if (Result<void> placed = model->update(weights, 0); !placed) return placed.error();
  return model;
}

const ModelConfig& Model::config() const { return state_->config; }
Shard Model::shard() const { return state_->shard; }
ThreadPool& Model::pool() const { return state_->pool; }
collectives::Communicator* Model::communicator() const { return state_->communicator; }
Range Model::vocabulary() const { return shard_range(state_->config.vocab_size, state_->shard); }
AttentionShape Model::attention_shape() const { return state_->attention; }
std::uint64_t Model::version() const { return state_->version; }

namespace {

/// The parameters that `given` names, or an error; `sharded` says whether shapes are those of the shard.
Result<std::vector<const Parameter*>> find_all(const std::vector<Parameter>& all, const Weights& given, std::optional<Shard> shard) {
  std::vector<const Parameter*> found;
  for (const auto& [name, tensor] : given) {
    const auto parameter = std::ranges::lower_bound(all, name, {}, &Parameter::name);
    if (parameter == all.end() || parameter->name != name) return Error{ErrorCode::bad_input, fmt::format("{}: the model has no such tensor", name)};
    std::vector<std::uint64_t> shape = parameter->shape;
    if (shard && parameter->split == Split::rows) shape[0] = shard_range(shape[0], *shard).size();
    if (shard && parameter->split == Split::columns) shape[1] = shard_range(shape[1], *shard).size();
    if (tensor.shape != shape) {
      return Error{ErrorCode::bad_input, fmt::format("{}: want shape [{}], got [{}]", name, fmt::join(shape, ", "), fmt::join(tensor.shape, ", "))};
    }
    found.push_back(&*parameter);
  }
  return found;
}

}  // namespace

Result<void> Model::update(const Weights& whole, std::uint64_t version) {
  Result<std::vector<const Parameter*>> found = find_all(state_->all, whole, std::nullopt);
  if (!found) return found.error();
  auto parameter = found->begin();
  for (const auto& [name, tensor] : whole) {
    const Parameter& split = **parameter++;
    if (state_->shard.degree == 1 || split.split == Split::whole) {
      state_->place(name, tensor.data);
    } else {
      state_->place(name, shard_of(split, tensor, state_->shard).data);
    }
  }
  state_->version = version;
  return {};
}

Result<void> Model::update_shard(const Weights& parts, std::uint64_t version) {
  if (Result<std::vector<const Parameter*>> found = find_all(state_->all, parts, state_->shard); !found) return found.error();
  for (const auto& [name, tensor] : parts) state_->place(name, tensor.data);
  state_->version = version;
  return {};
}

KvCache Model::make_cache(std::uint32_t slots, std::uint32_t length_max) const {
  return {state_->attention, state_->config.layers, slots, length_max};
}

const RopeTable& Model::rope_table(std::uint32_t positions) {
  State& state = *state_;
  TROUPE_CHECK(positions <= state.config.positions_max, "positions are checked before they are turned");
  if (!state.table || state.table->positions() < positions) {
    const std::uint32_t wanted = std::min(std::bit_ceil(std::max(positions, 256U)), state.config.positions_max);
    state.table.emplace(state.frequencies.inverse, state.frequencies.attention_factor, wanted);
  }
  return *state.table;
}

Result<void> Model::forward(const Batch& batch, KvCache* cache, std::span<const std::uint32_t> rows, Activation& hidden, Tape* tape) {
  State& state = *state_;
  TROUPE_CHECK(tape == nullptr || cache == nullptr, "a tape holds whole sequences");
  if (Result<void> checked = state.check(batch, cache); !checked) return checked;
  state.positions.clear();
  for (const SequenceSpan& span : batch.spans) {
    for (std::uint32_t i = 0; i < span.length; ++i) state.positions.push_back(span.first_position + i);
  }
  rope_table(*std::ranges::max_element(state.positions) + 1);
  if (tape != nullptr) {
    tape->batch = batch;
    tape->positions = state.positions;
    tape->attention_shape = state.attention;
    tape->layers.resize(state.layers.size());
  }

  const std::size_t dim = state.width.hidden;
  Activation& stream = state.stream;
  stream.resize(batch.rows() * dim);
  embedding_lookup(state.pool, stream, batch.tokens, state.embedding, dim);
  for (std::size_t index = 0; index < state.layers.size(); ++index) {
    LayerTape& kept = tape != nullptr ? tape->layers[index] : state.scratch;
    if (tape != nullptr) kept.input = stream;
    if (Result<void> attended = state.attend(batch, cache, index, kept); !attended) return attended;
    if (tape != nullptr) kept.middle = stream;
    if (Result<void> fed = state.feed_forward(state.layers[index], kept, batch.rows()); !fed) return fed;
  }

  const auto take = [&](const Activation& from, Activation& to) {
    to.resize(rows.size() * dim);
    for (std::size_t i = 0; i < rows.size(); ++i) std::copy_n(from.data() + rows[i] * dim, dim, to.data() + i * dim);
  };
  if (tape != nullptr) {
    tape->final_input = stream;
    tape->final_normed.resize(stream.size());
    tape->final_inverse_rms.resize(batch.rows());
    rms_norm(state.pool, tape->final_normed, stream, state.norm, state.config.rms_norm_eps, tape->final_inverse_rms);
    take(tape->final_normed, hidden);
    return {};
  }
  take(stream, hidden);
  if (!rows.empty()) rms_norm(state.pool, hidden, hidden, state.norm, state.config.rms_norm_eps);
  return {};
}

void Model::project(std::span<const float> hidden, Activation& logits) {
  const std::size_t rows = hidden.size() / state_->width.hidden;
  logits.resize(rows * state_->width.vocabulary);
  linear(state_->pool, logits, hidden, rows, state_->output);
}

Result<void> Model::gather_logits(Activation& part, Activation& whole) {
  State& state = *state_;
  if (state.communicator == nullptr) {
    std::swap(part, whole);
    return {};
  }
  Result<std::vector<Bytes>> parts = state.communicator->all_gather_variable(std::as_bytes(std::span(part)));
  if (!parts) return parts.error();
  const std::size_t rows = part.size() / state.width.vocabulary;
  const std::size_t vocabulary = state.config.vocab_size;
  whole.resize(rows * vocabulary);
  for (std::uint32_t member = 0; member < parts->size(); ++member) {
    const Range range = shard_range(vocabulary, {state.shard.degree, member});
    const Bytes& bytes = (*parts)[member];
    TROUPE_CHECK(bytes.size() == rows * range.size() * sizeof(float), "every member has the same rows of its part");
    for (std::size_t row = 0; row < rows; ++row) {
      std::memcpy(whole.data() + row * vocabulary + range.begin, bytes.data() + row * range.size() * sizeof(float), range.size() * sizeof(float));
    }
  }
  return {};
}

Result<Model::TokenLogprobs> Model::token_logprobs(std::span<const float> part, std::span<const TokenId> targets, float temperature) {
  State& state = *state_;
  /// What one shard knows of a row; the target's logit stands with the shard that holds it.
  struct RowPart {
    LogSumExp state;
    float logit = 0.0F;
  };
  const Range mine = vocabulary();
  std::vector<LogSumExp> states(targets.size());
  log_sum_exp(state.pool, states, part, state.shard_cuts(state.config.vocab_size), temperature);
  std::vector<RowPart> rows(targets.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool held = targets[i] >= mine.begin && targets[i] < mine.end;
    rows[i] = {states[i], held ? part[i * mine.size() + (targets[i] - mine.begin)] : 0.0F};
  }
  std::vector<RowPart> all = rows;
  if (state.communicator != nullptr) {
    all.resize(rows.size() * state.shard.degree);
    const Result<void> gathered = state.communicator->all_gather(std::as_bytes(std::span(rows)), std::as_writable_bytes(std::span(all)));
    if (!gathered) return gathered.error();
  }
  TokenLogprobs out;
  out.logprobs.resize(rows.size());
  out.states.resize(rows.size());
  std::vector<LogSumExp> shards(state.shard.degree);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    float logit = 0.0F;
    for (std::uint32_t member = 0; member < state.shard.degree; ++member) {
      const RowPart& row = all[member * rows.size() + i];
      const Range range = shard_range(state.config.vocab_size, {state.shard.degree, member});
      shards[member] = row.state;
      if (targets[i] >= range.begin && targets[i] < range.end) logit = row.logit;
    }
    out.states[i] = combine_shards(shards);
    out.logprobs[i] = static_cast<float>(log_probability(logit, temperature, out.states[i]));
  }
  return out;
}

}  // namespace troupe::models
