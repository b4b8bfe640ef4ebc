#include "models/kernels/activation.hpp"

#include <algorithm>

#include "models/numerics/float_math.hpp"

namespace troupe::models {

void swiglu(ThreadPool&, std::span<float> h, std::span<const float> gate, std::span<const float> up) {
  for (std::size_t i = 0; i < h.size(); ++i) h[i] = (gate[i] * numerics::sigmoid(gate[i])) * up[i];
}

void swiglu_backward(ThreadPool&, std::span<float> dgate, std::span<float> dup, std::span<const float> dh, std::span<const float> gate,
                     std::span<const float> up) {
  for (std::size_t i = 0; i < dh.size(); ++i) {
    const float s = numerics::sigmoid(gate[i]);
    const float slope = s * std::fma(gate[i], 1.0F - s, 1.0F);
    const float dg = (dh[i] * up[i]) * slope;
    dup[i] = dh[i] * (gate[i] * s);
    dgate[i] = dg;
  }
}

void embedding_lookup(ThreadPool&, std::span<float> x, std::span<const std::uint32_t> tokens, std::span<const float> table, std::size_t dim) {
  for (std::size_t row = 0; row < tokens.size(); ++row) std::copy_n(&table[tokens[row] * dim], dim, &x[row * dim]);
}

}  // namespace troupe::models
