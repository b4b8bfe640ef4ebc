#include "models/kernels/norm.hpp"

#include <cmath>

#include "models/kernels/reductions.hpp"

namespace troupe::models {

void rms_norm(ThreadPool&, std::span<float> y, std::span<const float> x, std::span<const float> w, float eps, std::span<float> inverse_rms) {
  const std::size_t dim = w.size();
  for (std::size_t row = 0; row < x.size() / dim; ++row) {
    const float* in = &x[row * dim];
    const float squares = segmented_sum<float>(SegmentCuts::of(dim), [&](std::size_t i, float sum) { return std::fma(in[i], in[i], sum); });
    const float r = 1.0F / std::sqrt(squares / static_cast<float>(dim) + eps);
    for (std::size_t i = 0; i < dim; ++i) y[row * dim + i] = (in[i] * r) * w[i];
    if (!inverse_rms.empty()) inverse_rms[row] = r;
  }
}

void rms_norm_backward(ThreadPool&, std::span<float> dx, std::span<const float> dy, std::span<const float> x, std::span<const float> w,
                       std::span<const float> inverse_rms) {
  const std::size_t dim = w.size();
  for (std::size_t row = 0; row < x.size() / dim; ++row) {
    const std::size_t at = row * dim;
    const float r = inverse_rms[row];
    const float dot = segmented_sum<float>(SegmentCuts::of(dim), [&](std::size_t i, float sum) { return std::fma(dy[at + i] * w[i], x[at + i], sum); });
    const float c = ((r * r) * r) / static_cast<float>(dim) * dot;
    for (std::size_t i = 0; i < dim; ++i) dx[at + i] = std::fma(-c, x[at + i], (dy[at + i] * w[i]) * r);
  }
}

}  // namespace troupe::models
