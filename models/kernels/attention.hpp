#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "models/kernels/thread_pool.hpp"
#include "models/numerics/contract.hpp"

namespace troupe::models {

struct AttentionShape {
  std::size_t heads = 0;     ///< query heads; query head h reads key/value head h / (heads / kv_heads)
  std::size_t kv_heads = 0;
  std::size_t head_dim = 0;
  float scale = 0.0F;        ///< of the dots: usually 1 / sqrt(head_dim)
  std::size_t window = 0;    ///< position i sees i − window + 1 … i; 0: all before it

  std::size_t group() const { return heads / kv_heads; }
  std::size_t block_floats() const { return kv_heads * head_dim * numerics::kAttentionBlock; }
};

/// Keys and values of one sequence in blocks of 64 absolute positions, each block_floats() long, one after another:
/// keys [block][kv_head][head_dim][64] (so that a vector holds neighbouring positions), values [block][kv_head][64][head_dim].
/// What lies beyond the last position that a query sees is never read into a result.
struct KeyValues {
  const float* keys = nullptr;
  const float* values = nullptr;
};

/// Floats of each of keys and values for `positions`: whole blocks.
inline std::size_t key_value_floats(const AttentionShape& shape, std::size_t positions) {
  return (positions + numerics::kAttentionBlock - 1) / numerics::kAttentionBlock * shape.block_floats();
}

/// Writes rows k, v [length, kv_heads, head_dim] (keys after rope) at positions first_position… into the blocks.
void store_key_values(const AttentionShape& shape, float* keys, float* values, std::span<const float> k, std::span<const float> v,
                      std::size_t first_position, std::size_t length);

/// Consecutive query rows of one sequence. Its keys and values up to first_position + length must be stored.
struct AttentionSpan {
  std::size_t first_row = 0;
  std::size_t first_position = 0;
  std::size_t length = 0;
  KeyValues cache;
};

/// The running maximum of the scores and the sum of exp(score − maximum), per row and query head: what backward needs.
struct SoftmaxState {
  float maximum = 0.0F;
  float sum = 0.0F;
};

/// Causal attention of q [rows, heads, head_dim] into out, same shape: one function for prefill, chunks, decode and the trainer.
/// Key blocks lie at absolute positions and are combined in ascending order (online softmax, arXiv:1805.02867), so how positions were
/// cut into calls changes no bit. states: [rows, heads] or empty.
void attention(ThreadPool& pool, const AttentionShape& shape, std::span<const AttentionSpan> spans, std::span<float> out, std::span<const float> q,
               std::span<SoftmaxState> states = {});

/// Gradients of whole sequences (first_position 0). dq [rows, heads, head_dim]; dk, dv [rows, kv_heads, head_dim]: one value a query head,
/// chains over ascending positions, summed over the group in the tree. out, q, states as forward had them. Outputs alias nothing.
void attention_backward(ThreadPool& pool, const AttentionShape& shape, std::span<const AttentionSpan> spans, std::span<float> dq, std::span<float> dk,
                        std::span<float> dv, std::span<const float> dout, std::span<const float> out, std::span<const float> q,
                        std::span<const SoftmaxState> states);

}  // namespace troupe::models
