#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/kernels/segments.hpp"
#include "models/kernels/thread_pool.hpp"

namespace troupe::models {

/// A whole sequence (positions 0 … length − 1) among the rows of a batch. A length of 0 is absent: it is passed through, never added.
struct SequenceRows {
  std::size_t first_row = 0;
  std::size_t length = 0;
};

/// One node of the tree over the global order of sequences: the gradient of sequences [index << level, (index + 1) << level).
/// Nodes are whole aligned blocks of a power of two, so they do not depend on how many sequences there are; fold_nodes adds what is left over.
struct GradientNode {
  std::uint32_t level = 0;
  std::uint64_t index = 0;
  bool present = false;              ///< false: every sequence of it is absent; data is then empty
  std::vector<float> data;           ///< the whole gradient; of an embedding, [rows.size(), dim]
  std::vector<std::uint32_t> rows;   ///< of an embedding: ascending ids that occur; other rows are absent
  bool sparse = false;               ///< data holds `rows` only

  std::uint64_t first() const { return index << level; }
  std::uint64_t end() const { return (index + 1) << level; }
};

/// The nodes, ascending, that a contiguous range of sequences gives.
using GradientNodes = std::vector<GradientNode>;

/// dW [outputs, inputs] = Σ dy[row, output] · x[row, input], dy [rows, outputs], x [rows, inputs]. A leaf is a block of 128 positions of one
/// sequence (one fma chain from +0); blocks in a tree, sequences in the tree over the global index. sequences[i] has global index first + i.
/// The trees are evaluated per output tile; memory is that of the returned nodes.
GradientNodes linear_gradient_weight(ThreadPool& pool, std::span<const float> dy, std::size_t outputs, std::span<const float> x, std::size_t inputs,
                                     std::span<const SequenceRows> sequences, std::uint64_t first);

/// The bias's: Σ dy, chains of sums.
GradientNodes bias_gradient(ThreadPool& pool, std::span<const float> dy, std::size_t outputs, std::span<const SequenceRows> sequences, std::uint64_t first);

/// A norm's weight: Σ dy · (x · inverse_rms), [dim] of rows [rows, dim].
GradientNodes norm_weight_gradient(ThreadPool& pool, std::span<const float> dy, std::span<const float> x, std::span<const float> inverse_rms,
                                   std::size_t dim, std::span<const SequenceRows> sequences, std::uint64_t first);

/// A q or k norm's: as norm_weight_gradient over [rows, heads, head_dim] with a weight of its own for each head, [heads · head_dim];
/// fold_heads adds the heads at the end. inverse_rms: [rows, heads].
GradientNodes head_norm_weight_gradient(ThreadPool& pool, std::span<const float> dy, std::span<const float> x, std::span<const float> inverse_rms,
                                        std::size_t heads, std::size_t head_dim, std::span<const SequenceRows> sequences, std::uint64_t first);

/// out [head_dim] = gradient [heads, head_dim] summed over heads: a chain of sums in each head segment that is held, then their tree.
/// cuts: of the heads (cuts.total() == heads); a shard's result is its subtree.
void fold_heads(std::span<float> out, std::span<const float> gradient, std::size_t head_dim, const SegmentCuts& cuts);

/// An embedding's: rows of dx [rows, dim] added by token. tokens: [rows]. Nodes are sparse.
GradientNodes embedding_gradient(ThreadPool& pool, std::span<const float> dx, std::size_t dim, std::span<const std::uint32_t> tokens,
                                 std::span<const SequenceRows> sequences, std::uint64_t first);

/// left + right of two neighbours of one level whose parent holds both (left.index even); absent ones are passed through.
GradientNode merge(ThreadPool& pool, GradientNode left, GradientNode right, std::size_t dim = 0);

/// Appends nodes that follow those already there, merging pairs that complete their parent. dim: an embedding's, 0 otherwise.
void append_nodes(ThreadPool& pool, GradientNodes& nodes, GradientNodes later, std::size_t dim = 0);

/// The finished tree of nodes that together cover [0, n): what is left over is added from the right, which is the split at the largest
/// power of two below n. dense_size: of the whole gradient; absent rows, or an absent gradient, are +0.
std::vector<float> fold_nodes(ThreadPool& pool, GradientNodes nodes, std::size_t dense_size, std::size_t dim = 0);

}  // namespace troupe::models
