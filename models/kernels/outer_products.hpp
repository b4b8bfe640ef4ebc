#pragma once

#include <cstddef>
#include <span>

#include "models/kernels/thread_pool.hpp"

namespace troupe::models {

/// One leaf of a gradient's tree, in the order in which a stack evaluates it: the rows' chain is pushed, then `merges` times the two on top
/// are added. What is absent has no step.
struct TreeStep {
  std::size_t first_row = 0;
  std::size_t rows = 0;
  std::size_t merges = 0;
};

/// out [outputs, inputs] = the tree of `steps` (at least one) over leaves Σ dy[row, output] · x[row, input], per element one fma chain from +0
/// in ascending row. dy [rows, outputs], x [rows, inputs], row-major. The whole tree is evaluated tile by tile; memory beside out is that of
/// a copy of the steps' rows.
void outer_products(ThreadPool& pool, float* out, const float* dy, std::size_t outputs, const float* x, std::size_t inputs, std::span<const TreeStep> steps);

/// sums [width] += Σ dy[row, ·], one chain of sums in ascending row. dy: [rows, width].
void add_rows(float* sums, const float* dy, std::size_t rows, std::size_t width);

/// sums [heads, dim] = fma chains Σ dy · (x · inverse_rms[row, head]) from the sums given, in ascending row. dy, x: [rows, heads, dim].
void add_normalised_rows(float* sums, const float* dy, const float* x, const float* inverse_rms, std::size_t rows, std::size_t heads, std::size_t dim);

}  // namespace troupe::models
