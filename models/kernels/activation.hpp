#pragma once

#include <cstdint>
#include <span>

#include "models/kernels/thread_pool.hpp"

namespace troupe::models {

/// h = (g σ(g)) u, element by element; h may alias either.
void swiglu(ThreadPool& pool, std::span<float> h, std::span<const float> gate, std::span<const float> up);

/// dgate = (dh u)(σ(g) (1 + g (1 − σ(g)))), dup = dh (g σ(g)). The outputs may alias gate and up, in this order, or dh.
void swiglu_backward(ThreadPool& pool, std::span<float> dgate, std::span<float> dup, std::span<const float> dh, std::span<const float> gate,
                     std::span<const float> up);

/// x [tokens, dim]: rows of table [vocabulary, dim]. Precondition: every token is below the vocabulary.
void embedding_lookup(ThreadPool& pool, std::span<float> x, std::span<const std::uint32_t> tokens, std::span<const float> table, std::size_t dim);

}  // namespace troupe::models
