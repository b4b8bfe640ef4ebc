#pragma once

#include <cstddef>
#include <span>

#include "models/kernels/thread_pool.hpp"

namespace troupe::models {

/// y = (x · r) · w with r = 1 / sqrt(Σ x² / dim + eps), row by row (arXiv:1910.07467, plus eps). dim = w.size(); x, y: [rows, dim]; y may alias x.
/// inverse_rms: [rows], what backward needs; may be empty. For q and k norms rows = tokens · heads and dim = head_dim.
void rms_norm(ThreadPool& pool, std::span<float> y, std::span<const float> x, std::span<const float> w, float eps, std::span<float> inverse_rms = {});

/// dx = r (dy w) − x (r³ / dim) Σ (dy w) x. dx may alias dy. x and inverse_rms as forward had them.
void rms_norm_backward(ThreadPool& pool, std::span<float> dx, std::span<const float> dy, std::span<const float> x, std::span<const float> w,
                       std::span<const float> inverse_rms);

}  // namespace troupe::models
