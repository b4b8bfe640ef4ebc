#include "models/kernels/gradients.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

#include "models/kernels/outer_products.hpp"
#include "models/numerics/trees.hpp"

namespace troupe::models {

namespace {

using numerics::kGradientBlock;
using Leaf = std::function<GradientNode(std::size_t first_row, std::size_t rows)>;

GradientNode dense_leaf(std::size_t size) {
  GradientNode leaf;
  leaf.present = true;
  leaf.data.resize(size);
  return leaf;
}

/// The tree of one sequence's blocks.
GradientNode sequence_gradient(ThreadPool& pool, const Leaf& leaf, std::size_t first_row, std::size_t length, std::size_t dim) {
  if (length <= kGradientBlock) return leaf(first_row, length);
  const std::size_t blocks = (length + kGradientBlock - 1) / kGradientBlock;
  const std::size_t split = numerics::split_point(blocks) * kGradientBlock;
  GradientNode left = sequence_gradient(pool, leaf, first_row, split, dim);
  GradientNode right = sequence_gradient(pool, leaf, first_row + split, length - split, dim);
  return merge(pool, std::move(left), std::move(right), dim);
}

GradientNodes all_sequences(ThreadPool& pool, std::span<const SequenceRows> sequences, std::uint64_t first, const Leaf& leaf, std::size_t dim = 0) {
  GradientNodes nodes;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    GradientNode node;
    if (sequences[i].length > 0) node = sequence_gradient(pool, leaf, sequences[i].first_row, sequences[i].length, dim);
    node.level = 0;
    node.index = first + i;
    GradientNodes one;
    one.push_back(std::move(node));
    append_nodes(pool, nodes, std::move(one), dim);
  }
  return nodes;
}

/// Appends the steps of one sequence's tree of blocks.
void plan_sequence(std::vector<TreeStep>& steps, std::size_t first_row, std::size_t length) {
  if (length <= kGradientBlock) {
    steps.push_back({first_row, length, 0});
    return;
  }
  const std::size_t split = numerics::split_point((length + kGradientBlock - 1) / kGradientBlock) * kGradientBlock;
  plan_sequence(steps, first_row, split);
  plan_sequence(steps, first_row + split, length - split);
  ++steps.back().merges;
}

/// Appends the steps of the aligned node that covers all of `sequences`, a power of two of them; false: all are absent.
bool plan_node(std::vector<TreeStep>& steps, std::span<const SequenceRows> sequences) {
  if (sequences.size() == 1) {
    if (sequences[0].length > 0) plan_sequence(steps, sequences[0].first_row, sequences[0].length);
    return sequences[0].length > 0;
  }
  const bool has_left = plan_node(steps, sequences.first(sequences.size() / 2));
  const bool has_right = plan_node(steps, sequences.subspan(sequences.size() / 2));
  if (has_left && has_right) ++steps.back().merges;
  return has_left || has_right;
}

/// The level of the largest aligned node that begins at `first` and covers at most `count` sequences.
std::uint32_t level_of(std::uint64_t first, std::size_t count) {
  const int aligned = first == 0 ? 63 : std::countr_zero(first);
  return static_cast<std::uint32_t>(std::min(aligned, static_cast<int>(std::bit_width(count)) - 1));
}

}  // namespace

GradientNodes linear_gradient_weight(ThreadPool& pool, std::span<const float> dy, std::size_t outputs, std::span<const float> x, std::size_t inputs,
                                     std::span<const SequenceRows> sequences, std::uint64_t first) {
  GradientNodes nodes;
  for (std::size_t i = 0; i < sequences.size();) {
    GradientNode node;
    node.level = level_of(first + i, sequences.size() - i);
    node.index = (first + i) >> node.level;
    const std::size_t count = std::size_t{1} << node.level;
    std::vector<TreeStep> steps;
    node.present = plan_node(steps, sequences.subspan(i, count));
    if (node.present) {
      node.data.resize(outputs * inputs);
      outer_products(pool, node.data.data(), dy.data(), outputs, x.data(), inputs, steps);
    }
    nodes.push_back(std::move(node));
    i += count;
  }
  return nodes;
}

GradientNodes bias_gradient(ThreadPool& pool, std::span<const float> dy, std::size_t outputs, std::span<const SequenceRows> sequences, std::uint64_t first) {
  return all_sequences(pool, sequences, first, [&](std::size_t first_row, std::size_t rows) {
    GradientNode leaf = dense_leaf(outputs);
    add_rows(leaf.data.data(), &dy[first_row * outputs], rows, outputs);
    return leaf;
  });
}

GradientNodes head_norm_weight_gradient(ThreadPool& pool, std::span<const float> dy, std::span<const float> x, std::span<const float> inverse_rms,
                                        std::size_t heads, std::size_t head_dim, std::span<const SequenceRows> sequences, std::uint64_t first) {
  const std::size_t width = heads * head_dim;
  return all_sequences(pool, sequences, first, [&](std::size_t first_row, std::size_t rows) {
    GradientNode leaf = dense_leaf(width);
    add_normalised_rows(leaf.data.data(), &dy[first_row * width], &x[first_row * width], &inverse_rms[first_row * heads], rows, heads, head_dim);
    return leaf;
  });
}

GradientNodes norm_weight_gradient(ThreadPool& pool, std::span<const float> dy, std::span<const float> x, std::span<const float> inverse_rms,
                                   std::size_t dim, std::span<const SequenceRows> sequences, std::uint64_t first) {
  return head_norm_weight_gradient(pool, dy, x, inverse_rms, 1, dim, sequences, first);
}

void fold_heads(std::span<float> out, std::span<const float> gradient, std::size_t head_dim, const SegmentCuts& cuts) {
  for (std::size_t d = 0; d < head_dim; ++d) {
    std::array<float, numerics::kSegments> sums{};
    for (std::size_t s = cuts.first; s < cuts.last; ++s) {
      for (std::size_t head = cuts.offset[s]; head < cuts.offset[s + 1]; ++head) sums[s] += gradient[head * head_dim + d];
    }
    out[d] = numerics::segment_tree(std::span<const float>(sums).subspan(cuts.first, cuts.held()));
  }
}

GradientNodes embedding_gradient(ThreadPool& pool, std::span<const float> dx, std::size_t dim, std::span<const std::uint32_t> tokens,
                                 std::span<const SequenceRows> sequences, std::uint64_t first) {
  const auto leaf_of = [&](std::size_t first_row, std::size_t rows) {
    GradientNode leaf;
    leaf.present = true;
    leaf.sparse = true;
    const auto ids = tokens.subspan(first_row, rows);
    leaf.rows.assign(ids.begin(), ids.end());
    std::sort(leaf.rows.begin(), leaf.rows.end());
    leaf.rows.erase(std::unique(leaf.rows.begin(), leaf.rows.end()), leaf.rows.end());
    leaf.data.resize(leaf.rows.size() * dim);
    for (std::size_t row = first_row; row < first_row + rows; ++row) {
      const auto slot = static_cast<std::size_t>(std::lower_bound(leaf.rows.begin(), leaf.rows.end(), tokens[row]) - leaf.rows.begin());
      for (std::size_t d = 0; d < dim; ++d) leaf.data[slot * dim + d] += dx[row * dim + d];
    }
    return leaf;
  };
  return all_sequences(pool, sequences, first, leaf_of, dim);
}

}  // namespace troupe::models
