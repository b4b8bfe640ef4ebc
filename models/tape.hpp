#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/batch.hpp"
#include "models/kernels/attention.hpp"

namespace troupe::models {

/// A row-major activation [rows, width] float32.
using Activation = std::vector<float>;

/// What backward needs of one layer. Widths are a shard's: q_width = its query heads · head_dim, kv_width likewise, mlp_width = its range of
/// the intermediate size. Empty where the configuration has no such step.
struct LayerTape {
  Activation input;                          ///< [rows, hidden] the residual stream before the layer
  Activation attention_input;                ///< [rows, hidden] its RMSNorm: what q, k and v read
  std::vector<float> attention_inverse_rms;  ///< [rows] 1 / sqrt(mean(x²) + eps)
  Activation q_projected;                    ///< [rows, q_width] with its bias, before the q norm; only with q/k norm
  Activation k_projected;                    ///< [rows, kv_width]
  std::vector<float> q_inverse_rms;          ///< [rows, heads of the shard]; only with q/k norm
  std::vector<float> k_inverse_rms;          ///< [rows, kv heads of the shard]
  Activation q;                              ///< [rows, q_width] after norm and rope
  Activation k;                              ///< [rows, kv_width] after norm and rope
  Activation v;                              ///< [rows, kv_width]
  std::vector<float> key_blocks;             ///< k and v of each sequence in attention's blocks; Tape::attention_spans points into them
  std::vector<float> value_blocks;
  Activation attention;                      ///< [rows, q_width] what o reads
  std::vector<SoftmaxState> softmax;         ///< [rows, heads of the shard]
  Activation middle;                         ///< [rows, hidden] the residual stream between attention and MLP
  Activation mlp_input;                      ///< [rows, hidden] its RMSNorm: what gate and up read
  std::vector<float> mlp_inverse_rms;        ///< [rows]
  Activation gate;                           ///< [rows, mlp_width] before SiLU
  Activation up;                             ///< [rows, mlp_width]
  Activation product;                        ///< [rows, mlp_width] silu(gate) · up: what down reads
};

/// Kept by Model::forward for backward. A batch that is taped holds whole sequences (every span starts at position 0), no cache.
/// Reused from step to step: vectors keep their memory.
struct Tape {
  Batch batch;
  std::vector<std::uint32_t> positions;  ///< [rows] absolute, for rope_backward
  AttentionShape attention_shape;        ///< of the shard
  std::vector<LayerTape> layers;
  Activation final_input;                ///< [rows, hidden] before the last norm
  std::vector<float> final_inverse_rms;  ///< [rows]
  Activation final_normed;               ///< [rows, hidden] of all rows; the output matrix read the wanted ones

  /// The spans of one layer as attention and its backward take them; valid while the tape is.
  std::vector<AttentionSpan> attention_spans(std::size_t layer) const;
};

/// The spans of a batch of whole sequences whose blocks lie one sequence after the other in these buffers.
std::vector<AttentionSpan> whole_sequence_spans(const Batch& batch, const AttentionShape& shape, const std::vector<float>& key_blocks,
                                                const std::vector<float>& value_blocks);

}  // namespace troupe::models
