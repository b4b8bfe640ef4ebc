#include "models/training/finished_gradients.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "actors/base/check.hpp"
#include "models/kernels/linear.hpp"
#include "models/kernels/optimizer.hpp"

namespace troupe::models {
namespace {

/// A node among bytes: this, then its rows, then its data.
struct NodeHeader {
  std::uint64_t index = 0, rows = 0, data = 0;
  std::uint32_t level = 0;
  std::uint8_t present = 0, sparse = 0;
  std::uint16_t unused = 0;
};

template <class T>
void append(Bytes& to, std::span<const T> values) {
  const BytesView bytes = std::as_bytes(values);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

template <class T>
BytesView take(BytesView from, std::vector<T>& values, std::size_t count) {
  TROUPE_CHECK(from.size() >= count * sizeof(T), "members send whole nodes");
  values.resize(count);
  if (count > 0) std::memcpy(values.data(), from.data(), count * sizeof(T));
  return from.subspan(count * sizeof(T));
}

Bytes bytes_of(const GradientNodes& nodes) {
  Bytes out;
  for (const GradientNode& node : nodes) {
    NodeHeader header;
    header.index = node.index;
    header.rows = node.rows.size();
    header.data = node.data.size();
    header.level = node.level;
    header.present = node.present ? 1 : 0;
    header.sparse = node.sparse ? 1 : 0;
    append(out, std::span<const NodeHeader>(&header, 1));
    append(out, std::span<const std::uint32_t>(node.rows));
    append(out, std::span<const float>(node.data));
  }
  return out;
}

GradientNodes nodes_of(BytesView bytes) {
  GradientNodes nodes;
  while (!bytes.empty()) {
    std::vector<NodeHeader> header;
    bytes = take(bytes, header, 1);
    GradientNode node;
    node.level = header[0].level;
    node.index = header[0].index;
    node.present = header[0].present != 0;
    node.sparse = header[0].sparse != 0;
    bytes = take(bytes, node.rows, header[0].rows);
    bytes = take(bytes, node.data, header[0].data);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

/// Whether every member's range is one node of one level: then the communicator's sum is the tree.
bool is_one_node_each(std::uint64_t sequences, std::uint32_t members) {
  return std::has_single_bit(members) && sequences % members == 0 && std::has_single_bit(sequences / members);
}

/// The nodes of all members, joined.
Result<GradientNodes> join(ThreadPool& pool, collectives::Communicator* data, std::uint64_t sequences, GradientNodes mine, std::size_t dim) {
  if (data == nullptr || data->size() == 1) return mine;
  const bool sparse = dim > 0;
  if (!sparse && is_one_node_each(sequences, data->size())) {
    TROUPE_CHECK(mine.size() == 1 && mine[0].present, "no sequence of a batch is empty");
    if (Result<void> summed = data->all_reduce_sum(std::span(mine[0].data)); !summed) return summed.error();
    mine[0].level += static_cast<std::uint32_t>(std::countr_zero(data->size()));
    mine[0].index = 0;
    return mine;
  }
  Result<std::vector<Bytes>> all = data->all_gather_variable(bytes_of(mine));
  if (!all) return all.error();
  mine.clear();
  for (Bytes& bytes : *all) {
    append_nodes(pool, mine, nodes_of(bytes), dim);
    bytes = {};
  }
  return mine;
}

bool is_head_norm(const std::string& name) { return name.ends_with("q_norm.weight") || name.ends_with("k_norm.weight"); }

std::size_t heads_of(const ModelConfig& config, const std::string& name) { return name.ends_with("q_norm.weight") ? config.heads : config.kv_heads; }

SegmentCuts cuts_of(const Model& model, std::size_t size, bool split) {
  const Shard shard = split ? model.shard() : Shard{};
  return SegmentCuts::shard(size, shard.index, shard.degree);
}

/// Elements of the shard's gradient, before heads are added.
std::size_t elements(const Model& model, const Parameter& parameter) {
  if (is_head_norm(parameter.name)) return heads_of(model.config(), parameter.name) / model.shard().degree * model.config().head_dim;
  std::size_t size = 1;
  for (std::size_t d = 0; d < parameter.shape.size(); ++d) {
    const bool split = (d == 0 && parameter.split == Split::rows) || (d == 1 && parameter.split == Split::columns);
    size *= split ? shard_range(parameter.shape[d], model.shard()).size() : parameter.shape[d];
  }
  return size;
}

/// Adds a tied matrix's use as output to that as embedding: the shards' rows, gathered, first.
Result<void> add_tied(Model& model, std::vector<float> output, std::vector<float>& embedding) {
  if (collectives::Communicator* shards = model.communicator()) {
    Result<std::vector<Bytes>> parts = shards->all_gather_variable(std::as_bytes(std::span(output)));
    if (!parts) return parts.error();
    output.resize(embedding.size());
    std::size_t at = 0;
    for (const Bytes& part : *parts) {
      TROUPE_CHECK(at + part.size() <= output.size() * sizeof(float), "the shards' rows are the vocabulary");
      if (!part.empty()) std::memcpy(reinterpret_cast<std::byte*>(output.data()) + at, part.data(), part.size());
      at += part.size();
    }
  }
  add(model.pool(), output, embedding);
  embedding = std::move(output);
  return {};
}

}  // namespace

Range range_of(std::uint64_t sequences, const collectives::Communicator* data) {
  if (data == nullptr) return {0, sequences};
  const auto [begin, end] = collectives::piece_of(sequences, data->member(), data->size());
  return {begin, end};
}

Result<Gradients> finish_gradients(Model& model, collectives::Communicator* data, std::uint64_t sequences, GradientTrees trees) {
  const ModelConfig& config = model.config();
  ThreadPool& pool = model.pool();
  const auto finished = [&](const Parameter& parameter) -> Result<std::vector<float>> {
    const std::size_t dim = parameter.name == kEmbedding ? config.hidden_size : 0;
    Result<GradientNodes> joined = join(pool, data, sequences, std::move(trees[parameter.name]), dim);
    if (!joined) return joined.error();
    return fold_nodes(pool, std::move(*joined), elements(model, parameter), dim);
  };
  Gradients out;
  for (const Parameter& parameter : parameters(config)) {
    Result<std::vector<float>> gradient = finished(parameter);
    if (!gradient) return gradient.error();
    if (is_head_norm(parameter.name)) {
      std::vector<float> folded(config.head_dim);
      fold_heads(folded, *gradient, config.head_dim, cuts_of(model, heads_of(config, parameter.name), true));
      if (model.communicator() != nullptr) {
        if (Result<void> summed = model.communicator()->all_reduce_sum(std::span(folded)); !summed) return summed.error();
      }
      *gradient = std::move(folded);
    }
    out.emplace(parameter.name, std::move(*gradient));
  }
  if (config.tied_embeddings) {
    Result<std::vector<float>> output = finished({std::string(kOutputMatrix), {config.vocab_size, config.hidden_size}, Split::rows});
    if (!output) return output.error();
    if (Result<void> added = add_tied(model, std::move(*output), out.at(std::string(kEmbedding))); !added) return added.error();
  }
  return out;
}

Result<double> gradient_norm(Model& model, const Gradients& gradients) {
  const std::vector<Parameter> all = parameters(model.config());
  // What one shard knows, finished by one sum over the shards: rows of matrices split by columns, sums of those split by rows.
  std::vector<double> partial;
  std::vector<double> whole;  // sums of parameters that every shard has whole, in order
  for (const Parameter& parameter : all) {
    const std::vector<float>& gradient = gradients.at(parameter.name);
    const bool matrix = parameter.shape.size() == 2;
    const std::size_t columns = matrix ? parameter.shape[1] : parameter.shape[0];
    const bool columns_split = matrix ? parameter.split == Split::columns : parameter.split == Split::rows;
    const SegmentCuts cuts = cuts_of(model, columns, columns_split);
    std::vector<double> squares(cuts.total() == 0 ? (matrix ? parameter.shape[0] : 1) : gradient.size() / cuts.total());
    row_squares(model.pool(), squares, gradient, cuts);
    if (columns_split) {
      partial.insert(partial.end(), squares.begin(), squares.end());
    } else {
      const bool rows_split = parameter.split == Split::rows;
      (rows_split ? partial : whole).push_back(fold_rows(squares, cuts_of(model, matrix ? parameter.shape[0] : 1, rows_split)));
    }
  }
  if (model.communicator() != nullptr) {
    if (Result<void> summed = model.communicator()->all_reduce_sum(std::span(partial)); !summed) return summed.error();
  }
  double total = 0.0;
  auto next_partial = partial.begin();
  auto next_whole = whole.begin();
  for (const Parameter& parameter : all) {
    const bool matrix = parameter.shape.size() == 2;
    if (parameter.split == Split::columns || (!matrix && parameter.split == Split::rows)) {
      const std::size_t rows = matrix ? parameter.shape[0] : 1;
      total += fold_rows(std::span<const double>(&*next_partial, rows), SegmentCuts::of(rows));
      next_partial += static_cast<std::ptrdiff_t>(rows);
    } else {
      total += parameter.split == Split::rows ? *next_partial++ : *next_whole++;
    }
  }
  return std::sqrt(total);
}

}  // namespace troupe::models
