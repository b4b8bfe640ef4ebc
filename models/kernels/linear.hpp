#pragma once

#include <cstddef>
#include <span>

#include "models/kernels/packed_matrix.hpp"

namespace troupe::models {

/// y [rows, b.outputs()] = x [rows, b.depth()] · B, row-major. Per element: one fma chain a segment, from +0, ascending k; the segments
/// that B holds in their tree. A shard's y is its subtree: the communicator's sum over members finishes it. Any number of rows gives each
/// row the same bits. y must not alias x. Also the gradient of the input, with pack_transposed and gather_segments.
void linear(ThreadPool& pool, std::span<float> y, std::span<const float> x, std::size_t rows, const PackedMatrix& b);

/// y[row] += bias, after the whole tree (with tensor parallelism after the communicator's sum).
void add_bias(ThreadPool& pool, std::span<float> y, std::span<const float> bias, std::size_t rows);

/// y += x, element by element.
void add(ThreadPool& pool, std::span<float> y, std::span<const float> x);

/// y *= factor.
void scale(ThreadPool& pool, std::span<float> y, float factor);

}  // namespace troupe::models
