#pragma once

#include <cstdint>
#include <vector>

#include "models/batch.hpp"

namespace troupe::models {

/// A row-major activation [rows, width] float32.
using Activation = std::vector<float>;

/// What backward needs of one layer. Widths are a shard's: q_width = q_size / degree (its query heads), kv_width, mlp_width = its range of
/// the intermediate size. Empty where the configuration has no such step.
struct LayerTape {
  Activation input;                      ///< [rows, hidden] the residual stream before the layer
  Activation attention_input;            ///< [rows, hidden] its RMSNorm: what q, k and v read
  std::vector<float> attention_inverse_rms;  ///< [rows] 1/sqrt(mean(x²) + eps)
  Activation q_projected;                ///< [rows, q_width] before the q norm (with its bias); only with q/k norm
  Activation k_projected;                ///< [rows, kv_width]
  std::vector<float> q_inverse_rms;      ///< [rows, heads of the shard]; only with q/k norm
  std::vector<float> k_inverse_rms;      ///< [rows, kv heads of the shard]
  Activation q;                          ///< [rows, q_width] after norm and rope
  Activation k;                          ///< [rows, kv_width] after norm and rope
  Activation v;                          ///< [rows, kv_width]
  Activation attention;                  ///< [rows, q_width] what o reads
  std::vector<float> attention_log_sum_exp;  ///< [rows, heads of the shard] of the scaled scores
  Activation middle;                     ///< [rows, hidden] the residual stream between attention and MLP
  Activation mlp_input;                  ///< [rows, hidden] its RMSNorm: what gate and up read
  std::vector<float> mlp_inverse_rms;    ///< [rows]
  Activation gate;                       ///< [rows, mlp_width] before SiLU
  Activation up;                         ///< [rows, mlp_width]
  Activation product;                    ///< [rows, mlp_width] silu(gate) · up: what down reads
};

/// Kept by Model::forward for backward. A batch that is taped holds whole sequences (every span starts at position 0), no cache.
/// Reused from step to step: vectors keep their memory.
struct Tape {
  Batch batch;
  std::vector<LayerTape> layers;
  Activation final_input;                ///< [rows, hidden] before the last norm
  std::vector<float> final_inverse_rms;  ///< [rows]
  Activation final_normed;               ///< [rows, hidden] what the output matrix reads, of all rows
};

}  // namespace troupe::models
