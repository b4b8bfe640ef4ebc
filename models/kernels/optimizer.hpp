#pragma once

#include <cstddef>
#include <span>

#include "models/kernels/segments.hpp"
#include "models/kernels/thread_pool.hpp"

namespace troupe::models {

/// One step's numbers of AdamW (arXiv:1711.05101), computed by the caller in double.
struct AdamW {
  double learning_rate = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;            ///< added after the bias-corrected square root
  double weight_decay = 0.0;    ///< decoupled: p ← p (1 − lr · decay) first
  double correction1 = 1.0;     ///< 1 − beta1^step
  double correction2 = 1.0;     ///< 1 − beta2^step
  double gradient_scale = 1.0;  ///< of clipping
};

/// p, m, v and g, element by element, in double and rounded at the end:
/// g' = g · scale; m = b1 m + (1 − b1) g'; v = b2 v + (1 − b2) g'²; p = p (1 − lr d) − lr (m / c1) / (sqrt(v / c2) + eps)
void adamw_update(ThreadPool& pool, std::span<float> p, std::span<float> m, std::span<float> v, std::span<const float> g, const AdamW& step);

/// squares [rows] of g [rows, cuts.total()], in double: the column segments that are held, 16 interleaved partials in each, their tree.
/// A vector parameter is one row. Columns split over shards: the communicator's sum of `squares` comes before fold_rows.
void row_squares(ThreadPool& pool, std::span<double> squares, std::span<const float> g, const SegmentCuts& cuts);

/// Σ of values per row: a chain in each row segment that is held, then their tree (a shard's subtree). cuts.total() == values.size().
double fold_rows(std::span<const double> values, const SegmentCuts& cuts);

}  // namespace troupe::models
