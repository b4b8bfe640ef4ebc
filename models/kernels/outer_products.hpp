#pragma once

#include <cstddef>

#include "models/kernels/thread_pool.hpp"

namespace troupe::models {

/// out [outputs, inputs] = Σ dy[row, output] · x[row, input] over rows [0, rows): per element one fma chain from +0 in ascending row.
/// dy [rows, outputs], x [rows, inputs], row-major. The leaf of a weight's gradient.
void outer_products(ThreadPool& pool, float* out, const float* dy, std::size_t outputs, const float* x, std::size_t inputs, std::size_t rows);

}  // namespace troupe::models
