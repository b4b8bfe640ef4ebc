#include "models/training/backward.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/base/check.hpp"
#include "models/kernels/activation.hpp"
#include "models/kernels/linear.hpp"
#include "models/kernels/norm.hpp"
#include "models/kernels/rope.hpp"

namespace troupe::models {

Backward::Backward(Model& model, std::size_t logits_max) : model_(model), logits_max_(logits_max), layers_(model.config().layers) {}

SegmentCuts Backward::shard_cuts(std::size_t size) const { return SegmentCuts::shard(size, model_.shard().index, model_.shard().degree); }

void Backward::update(const Weights& shard) {
  const ModelConfig& config = model_.config();
  ThreadPool& pool = model_.pool();
  const std::size_t hidden = config.hidden_size;
  const auto q = shard_cuts(config.q_size()), kv = shard_cuts(config.kv_size()), mlp = shard_cuts(config.intermediate_size);
  const auto pack = [&](PackedMatrix& to, std::initializer_list<TransposedPart> parts, std::size_t inputs) {
    to.pack_transposed(pool, std::span(parts.begin(), parts.size()), inputs);
  };
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const auto data = [&](std::string_view name) -> const std::vector<float>& { return shard.at(fmt::format("model.layers.{}.{}.weight", i, name)).data; };
    Layer& layer = layers_[i];
    pack(layer.qkv, {{data("self_attn.q_proj"), q}, {data("self_attn.k_proj"), kv}, {data("self_attn.v_proj"), kv}}, hidden);
    pack(layer.o, {{data("self_attn.o_proj"), SegmentCuts::of(hidden)}}, q.total());
    pack(layer.gate_up, {{data("mlp.gate_proj"), mlp}, {data("mlp.up_proj"), mlp}}, hidden);
    pack(layer.down, {{data("mlp.down_proj"), SegmentCuts::of(hidden)}}, mlp.total());
    layer.input_norm = data("input_layernorm");
    layer.post_norm = data("post_attention_layernorm");
    if (!config.qk_norm) continue;
    layer.q_norm = data("self_attn.q_norm");
    layer.k_norm = data("self_attn.k_norm");
  }
  norm_ = shard.at("model.norm.weight").data;
  const Range rows = model_.vocabulary();
  std::span<const float> output;
  if (config.tied_embeddings) {
    output = std::span(shard.at(std::string(kEmbedding)).data).subspan(rows.begin * hidden, rows.size() * hidden);
  } else {
    output = shard.at(std::string(kOutputMatrix)).data;
  }
  pack(output_, {{output, shard_cuts(config.vocab_size)}}, hidden);
}

/// One run's state. `stream` is the gradient of the residual stream, from the end towards the embedding.
struct Backward::Pass {
  Backward& self;
  const Tape& tape;
  std::uint64_t first;
  GradientTrees& trees;
  const ModelConfig& config = self.model_.config();
  ThreadPool& pool = self.model_.pool();
  std::size_t rows = tape.batch.rows();
  std::size_t hidden = config.hidden_size;
  std::vector<SequenceRows> sequences{};
  Activation stream{}, branch{}, gathered{};

  void add(std::string name, GradientNodes nodes, std::size_t dim = 0) { append_nodes(pool, trees[std::move(name)], std::move(nodes), dim); }
  void add_weight(std::string name, const Activation& dy, std::size_t outputs, const Activation& x, std::size_t inputs) {
    add(std::move(name), linear_gradient_weight(pool, dy, outputs, x, inputs, sequences, first));
  }
  void add_bias_of(std::string name, const Activation& dy, std::size_t outputs) { add(std::move(name), bias_gradient(pool, dy, outputs, sequences, first)); }

  Result<void> sum_over_shards(Activation& values) const {
    if (self.model_.communicator() == nullptr) return {};
    return self.model_.communicator()->all_reduce_sum(std::span(values));
  }

  /// branch = Σ over the parts' outputs, whole: the gradient of what several linears read.
  Result<void> input_gradient(std::span<const SegmentSource> parts, const PackedMatrix& weights) {
    gathered.resize(rows * weights.depth());
    gather_segments(pool, gathered, parts, rows);
    branch.resize(rows * hidden);
    linear(pool, branch, gathered, rows, weights);
    return sum_over_shards(branch);
  }

  /// The norm's weight, and its input's gradient in place of `branch`.
  void through_norm(std::string name, const Activation& input, const std::vector<float>& weight, const std::vector<float>& inverse_rms) {
    add(std::move(name), norm_weight_gradient(pool, branch, input, inverse_rms, hidden, sequences, first));
    rms_norm_backward(pool, branch, branch, input, weight, inverse_rms);
  }

  Result<void> through_output(float temperature, const Loss& loss);
  Result<void> through_sequences(std::size_t begin, std::size_t end, float temperature, const Loss& loss, Activation& logits);
  Result<void> through_feed_forward(std::size_t index, const std::string& name);
  Result<void> through_attention(std::size_t index, const std::string& name);
  void through_head_norm(std::string name, Activation& gradient, const Activation& input, const std::vector<float>& weight, const std::vector<float>& inverse_rms,
                         std::size_t heads);
};

/// Logits of whole sequences, as many at a time as stay below logits_max: branch becomes the gradient of the last norm's output.
Result<void> Backward::Pass::through_output(float temperature, const Loss& loss) {
  branch.assign(rows * hidden, 0.0F);
  Activation logits;
  const std::size_t rows_max = self.logits_max_ / std::max<std::size_t>(1, self.model_.vocabulary().size());
  for (std::size_t begin = 0; begin < sequences.size();) {
    std::size_t end = begin + 1;
    std::size_t count = sequences[begin].length;
    while (end < sequences.size() && count + sequences[end].length <= rows_max) count += sequences[end++].length;
    if (Result<void> done = through_sequences(begin, end, temperature, loss, logits); !done) return done;
    begin = end;
  }
  return sum_over_shards(branch);
}

Result<void> Backward::Pass::through_sequences(std::size_t begin, std::size_t end, float temperature, const Loss& loss, Activation& logits) {
  Model& model = self.model_;
  const std::size_t from = sequences[begin].first_row;
  const std::size_t count = sequences[end - 1].first_row + sequences[end - 1].length - from;
  const auto normed = std::span(tape.final_normed).subspan(from * hidden, count * hidden);
  // Every row has a target; that of a sequence's last row is token 0 and counts nothing, as its slope stays 0.
  std::vector<TokenId> targets(count);
  for (std::size_t i = begin; i < end; ++i) {
    const std::size_t row = sequences[i].first_row;
    std::copy_n(tape.batch.tokens.begin() + static_cast<std::ptrdiff_t>(row) + 1, sequences[i].length - 1, targets.begin() + static_cast<std::ptrdiff_t>(row - from));
  }
  model.project(normed, logits);
  Result<Model::TokenLogprobs> scored = model.token_logprobs(logits, targets, temperature);
  if (!scored) return scored.error();

  std::vector<float> slopes(count), entropy_slopes(count);
  std::vector<SequenceRows> local;
  for (std::size_t i = begin; i < end; ++i) {
    const std::size_t row = sequences[i].first_row - from, length = sequences[i].length - 1;
    loss({i, std::span(scored->logprobs).subspan(row, length), std::span(scored->states).subspan(row, length), std::span(slopes).subspan(row, length),
          std::span(entropy_slopes).subspan(row, length)});
    local.push_back({row, sequences[i].length});
  }
  const bool with_entropy = std::ranges::any_of(entropy_slopes, [](float slope) { return slope != 0.0F; });
  Activation copy;
  if (with_entropy) copy = logits;
  log_probability_gradient(pool, logits, logits, scored->states, targets, slopes, model.vocabulary().begin, temperature);
  if (with_entropy) add_entropy_gradient(pool, logits, copy, scored->states, entropy_slopes, temperature);
  add(std::string(kOutputMatrix), linear_gradient_weight(pool, logits, model.vocabulary().size(), normed, hidden, local, first + begin));
  // One linear alone needs no gathering: its segments already lie in order.
  linear(pool, std::span(branch).subspan(from * hidden, count * hidden), logits, count, self.output_);
  return {};
}

Result<void> Backward::Pass::through_feed_forward(std::size_t index, const std::string& name) {
  const Layer& layer = self.layers_[index];
  const LayerTape& kept = tape.layers[index];
  const SegmentCuts mlp = self.shard_cuts(config.intermediate_size);
  const std::size_t width = mlp.total();
  Activation product(rows * width), gate(rows * width), up(rows * width);
  add_weight(name + "mlp.down_proj.weight", stream, hidden, kept.product, width);
  linear(pool, product, stream, rows, layer.down);
  swiglu_backward(pool, gate, up, product, kept.gate, kept.up);
  add_weight(name + "mlp.gate_proj.weight", gate, width, kept.mlp_input, hidden);
  add_weight(name + "mlp.up_proj.weight", up, width, kept.mlp_input, hidden);
  const SegmentSource parts[] = {{gate, mlp}, {up, mlp}};
  if (Result<void> summed = input_gradient(parts, layer.gate_up); !summed) return summed;
  through_norm(name + "post_attention_layernorm.weight", kept.middle, layer.post_norm, kept.mlp_inverse_rms);
  models::add(pool, stream, branch);
  return {};
}

void Backward::Pass::through_head_norm(std::string name, Activation& gradient, const Activation& input, const std::vector<float>& weight,
                                       const std::vector<float>& inverse_rms, std::size_t heads) {
  add(std::move(name), head_norm_weight_gradient(pool, gradient, input, inverse_rms, heads, config.head_dim, sequences, first));
  rms_norm_backward(pool, gradient, gradient, input, weight, inverse_rms);
}

Result<void> Backward::Pass::through_attention(std::size_t index, const std::string& name) {
  const Layer& layer = self.layers_[index];
  const LayerTape& kept = tape.layers[index];
  const AttentionShape& shape = tape.attention_shape;
  const SegmentCuts q_cuts = self.shard_cuts(config.q_size()), kv_cuts = self.shard_cuts(config.kv_size());
  const std::size_t q_width = q_cuts.total(), kv_width = kv_cuts.total();
  if (config.output_bias) add_bias_of(name + "self_attn.o_proj.bias", stream, hidden);
  add_weight(name + "self_attn.o_proj.weight", stream, hidden, kept.attention, q_width);
  Activation out(rows * q_width), q(rows * q_width), k(rows * kv_width), v(rows * kv_width);
  linear(pool, out, stream, rows, layer.o);
  const std::vector<AttentionSpan> spans = tape.attention_spans(index);
  attention_backward(pool, shape, spans, q, k, v, out, kept.attention, kept.q, kept.softmax);
  const RopeTable& table = self.model_.rope_table(*std::ranges::max_element(tape.positions) + 1);
  rope_backward(pool, q, tape.positions, shape.heads, table);
  rope_backward(pool, k, tape.positions, shape.kv_heads, table);
  if (config.qk_norm) {
    through_head_norm(name + "self_attn.q_norm.weight", q, kept.q_projected, layer.q_norm, kept.q_inverse_rms, shape.heads);
    through_head_norm(name + "self_attn.k_norm.weight", k, kept.k_projected, layer.k_norm, kept.k_inverse_rms, shape.kv_heads);
  }
  struct Projection {
    const char* name;
    const Activation& gradient;
    std::size_t width;
  };
  for (const Projection& each : {Projection{"q_proj", q, q_width}, Projection{"k_proj", k, kv_width}, Projection{"v_proj", v, kv_width}}) {
    if (config.qkv_bias) add_bias_of(fmt::format("{}self_attn.{}.bias", name, each.name), each.gradient, each.width);
    add_weight(fmt::format("{}self_attn.{}.weight", name, each.name), each.gradient, each.width, kept.attention_input, hidden);
  }
  const SegmentSource parts[] = {{q, q_cuts}, {k, kv_cuts}, {v, kv_cuts}};
  if (Result<void> summed = input_gradient(parts, layer.qkv); !summed) return summed;
  through_norm(name + "input_layernorm.weight", kept.input, layer.input_norm, kept.attention_inverse_rms);
  models::add(pool, stream, branch);
  return {};
}

Result<void> Backward::run(const Tape& tape, float temperature, std::uint64_t first, const Loss& loss, GradientTrees& trees) {
  TROUPE_CHECK(tape.layers.size() == layers_.size() && !norm_.empty(), "the tape is this model's, and update came before");
  Pass pass{.self = *this, .tape = tape, .first = first, .trees = trees};
  std::size_t row = 0;
  for (const SequenceSpan& span : tape.batch.spans) {
    pass.sequences.push_back({row, span.length});
    row += span.length;
  }
  if (Result<void> done = pass.through_output(temperature, loss); !done) return done;
  pass.through_norm("model.norm.weight", tape.final_input, norm_, tape.final_inverse_rms);
  std::swap(pass.stream, pass.branch);
  for (std::size_t index = layers_.size(); index-- > 0;) {
    const std::string name = fmt::format("model.layers.{}.", index);
    if (Result<void> done = pass.through_feed_forward(index, name); !done) return done;
    if (Result<void> done = pass.through_attention(index, name); !done) return done;
  }
  const std::size_t dim = model_.config().hidden_size;
  pass.add(std::string(kEmbedding), embedding_gradient(model_.pool(), pass.stream, dim, tape.batch.tokens, pass.sequences, first), dim);
  return {};
}

}  // namespace troupe::models
