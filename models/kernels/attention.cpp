#include "models/kernels/attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "models/kernels/reductions.hpp"
#include "models/numerics/float_math.hpp"

namespace troupe::models {

namespace {

constexpr std::size_t kBlock = numerics::kAttentionBlock;

std::size_t first_key(const AttentionShape& shape, std::size_t position) {
  return shape.window == 0 || position + 1 <= shape.window ? 0 : position + 1 - shape.window;
}

float key_at(const AttentionShape& shape, const KeyValues& cache, std::size_t position, std::size_t kv_head, std::size_t d) {
  return cache.keys[position / kBlock * shape.block_floats() + (kv_head * shape.head_dim + d) * kBlock + position % kBlock];
}
float value_at(const AttentionShape& shape, const KeyValues& cache, std::size_t position, std::size_t kv_head, std::size_t d) {
  return cache.values[position / kBlock * shape.block_floats() + (kv_head * kBlock + position % kBlock) * shape.head_dim + d];
}

float score(const AttentionShape& shape, const KeyValues& cache, const float* q, std::size_t position, std::size_t kv_head) {
  float dot = 0.0F;
  for (std::size_t d = 0; d < shape.head_dim; ++d) dot = std::fma(q[d], key_at(shape, cache, position, kv_head, d), dot);
  return dot * shape.scale;
}

SoftmaxState attend(const AttentionShape& shape, const KeyValues& cache, std::size_t position, std::size_t kv_head, const float* q, float* out) {
  SoftmaxState all;
  std::vector<float> weighted(shape.head_dim);
  for (std::size_t begin = first_key(shape, position); begin <= position; begin = (begin / kBlock + 1) * kBlock) {
    const std::size_t end = std::min(position + 1, (begin / kBlock + 1) * kBlock);
    std::array<float, kBlock> scores{};
    SoftmaxState block{.maximum = -INFINITY, .sum = 0.0F};
    for (std::size_t j = begin; j < end; ++j) {
      scores[j % kBlock] = score(shape, cache, q, j, kv_head);
      if (scores[j % kBlock] > block.maximum) block.maximum = scores[j % kBlock];
    }
    block.maximum += 0.0F;
    std::fill(weighted.begin(), weighted.end(), 0.0F);
    const std::size_t base = begin / kBlock * kBlock;
    block.sum = interleaved_sum<float>(base, base + kBlock, [&](std::size_t j, float sum) {
      if (j < begin || j >= end) return sum;
      const float p = numerics::exp(scores[j % kBlock] - block.maximum);
      for (std::size_t d = 0; d < shape.head_dim; ++d) weighted[d] = std::fma(p, value_at(shape, cache, j, kv_head, d), weighted[d]);
      return sum + p;
    });
    if (all.sum == 0.0F) {
      all = block;
      std::copy(weighted.begin(), weighted.end(), out);
      continue;
    }
    const float maximum = all.maximum > block.maximum ? all.maximum : block.maximum;
    const float before = numerics::exp(all.maximum - maximum), now = numerics::exp(block.maximum - maximum);
    all.maximum = maximum;
    all.sum = std::fma(block.sum, now, all.sum * before);
    for (std::size_t d = 0; d < shape.head_dim; ++d) out[d] = std::fma(weighted[d], now, out[d] * before);
  }
  for (std::size_t d = 0; d < shape.head_dim; ++d) out[d] = out[d] / all.sum;
  return all;
}

}  // namespace

void store_key_values(const AttentionShape& shape, float* keys, float* values, std::span<const float> k, std::span<const float> v,
                      std::size_t first_position, std::size_t length) {
  for (std::size_t row = 0; row < length; ++row) {
    const std::size_t position = first_position + row;
    const std::size_t block = position / kBlock * shape.block_floats();
    for (std::size_t head = 0; head < shape.kv_heads; ++head) {
      const std::size_t from = (row * shape.kv_heads + head) * shape.head_dim;
      float* to = keys + block + head * shape.head_dim * kBlock + position % kBlock;
      for (std::size_t d = 0; d < shape.head_dim; ++d) to[d * kBlock] = k[from + d];
      std::copy_n(&v[from], shape.head_dim, values + block + (head * kBlock + position % kBlock) * shape.head_dim);
    }
  }
}

void attention(ThreadPool&, const AttentionShape& shape, std::span<const AttentionSpan> spans, std::span<float> out, std::span<const float> q,
               std::span<SoftmaxState> states) {
  for (const AttentionSpan& span : spans) {
    for (std::size_t i = 0; i < span.length; ++i) {
      for (std::size_t head = 0; head < shape.heads; ++head) {
        const std::size_t at = (span.first_row + i) * shape.heads + head;
        const SoftmaxState state = attend(shape, span.cache, span.first_position + i, head / shape.group(), &q[at * shape.head_dim], &out[at * shape.head_dim]);
        if (!states.empty()) states[at] = state;
      }
    }
  }
}

void attention_backward(ThreadPool&, const AttentionShape& shape, std::span<const AttentionSpan> spans, std::span<float> dq, std::span<float> dk,
                        std::span<float> dv, std::span<const float> dout, std::span<const float> out, std::span<const float> q,
                        std::span<const SoftmaxState> states) {
  const std::size_t dim = shape.head_dim;
  for (const AttentionSpan& span : spans) {
    const std::size_t width = shape.heads * dim;
    std::vector<float> keys(span.length * width), values(span.length * width);  // one gradient a query head
    std::fill_n(&dq[span.first_row * width], span.length * width, 0.0F);
    for (std::size_t head = 0; head < shape.heads; ++head) {
      const std::size_t kv_head = head / shape.group();
      for (std::size_t i = 0; i < span.length; ++i) {
        const std::size_t at = (span.first_row + i) * shape.heads + head;
        const float* qi = &q[at * dim];
        const float* di = &dout[at * dim];
        float delta = 0.0F;
        for (std::size_t d = 0; d < dim; ++d) delta = std::fma(di[d], out[at * dim + d], delta);
        for (std::size_t j = first_key(shape, i); j <= i; ++j) {
          const float p = numerics::exp(score(shape, span.cache, qi, j, kv_head) - states[at].maximum) / states[at].sum;
          float dp = 0.0F;
          for (std::size_t d = 0; d < dim; ++d) dp = std::fma(di[d], value_at(shape, span.cache, j, kv_head, d), dp);
          const float ds = (p * (dp - delta)) * shape.scale;
          for (std::size_t d = 0; d < dim; ++d) {
            float& gq = dq[at * dim + d];
            float& gk = keys[j * width + head * dim + d];
            float& gv = values[j * width + head * dim + d];
            gq = std::fma(ds, key_at(shape, span.cache, j, kv_head, d), gq);
            gk = std::fma(ds, qi[d], gk);
            gv = std::fma(p, di[d], gv);
          }
        }
      }
    }
    std::vector<float> group(shape.group());
    const auto fold = [&](const std::vector<float>& each, std::size_t j, std::size_t kv_head, std::size_t d) {
      for (std::size_t g = 0; g < group.size(); ++g) group[g] = each[j * width + (kv_head * group.size() + g) * dim + d];
      return numerics::pairwise_tree(std::span<const float>(group));
    };
    for (std::size_t j = 0; j < span.length; ++j) {
      for (std::size_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
        for (std::size_t d = 0; d < dim; ++d) {
          const std::size_t to = ((span.first_row + j) * shape.kv_heads + kv_head) * dim + d;
          dk[to] = fold(keys, j, kv_head, d);
          dv[to] = fold(values, j, kv_head, d);
        }
      }
    }
  }
}

}  // namespace troupe::models
