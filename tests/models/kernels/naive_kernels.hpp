#pragma once

// Every kernel as one plain operation at a time, in the order that the contract fixes: what the vector kernels must equal in every bit.

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "models/kernels/activation.hpp"
#include "models/kernels/attention.hpp"
#include "models/kernels/gradients.hpp"
#include "models/kernels/linear.hpp"
#include "models/kernels/norm.hpp"
#include "models/kernels/optimizer.hpp"
#include "models/kernels/reductions.hpp"
#include "models/kernels/rope.hpp"
#include "models/kernels/vocabulary.hpp"
#include "models/numerics/double_math.hpp"
#include "models/numerics/float_math.hpp"

namespace troupe::models::naive {

inline float element(const float* x, const PackedMatrix& b, std::size_t output) {
  const SegmentCuts& cuts = b.cuts();
  const float* column = b.panel(output / PackedMatrix::kPanel) + output % PackedMatrix::kPanel;
  std::array<float, numerics::kSegments> sums{};
  for (std::size_t s = cuts.first; s < cuts.last; ++s) {
    for (std::size_t k = cuts.offset[s]; k < cuts.offset[s + 1]; ++k) sums[s] = std::fma(x[k], column[k * PackedMatrix::kPanel], sums[s]);
  }
  return numerics::segment_tree(std::span<const float>(sums).subspan(cuts.first, cuts.held()));
}


inline void linear(ThreadPool& pool, std::span<float> y, std::span<const float> x, std::size_t rows, const PackedMatrix& b) {
  pool.parallel_ranges(rows, 4, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      for (std::size_t output = 0; output < b.outputs(); ++output) y[row * b.outputs() + output] = element(&x[row * b.depth()], b, output);
    }
  });
}

inline void add_bias(ThreadPool&, std::span<float> y, std::span<const float> bias, std::size_t rows) {
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < bias.size(); ++i) y[row * bias.size() + i] += bias[i];
  }
}

inline void add(ThreadPool&, std::span<float> y, std::span<const float> x) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += x[i];
}

inline void scale(ThreadPool&, std::span<float> y, float factor) {
  for (float& value : y) value *= factor;
}

inline void rms_norm(ThreadPool&, std::span<float> y, std::span<const float> x, std::span<const float> w, float eps, std::span<float> inverse_rms) {
  const std::size_t dim = w.size();
  for (std::size_t row = 0; row < x.size() / dim; ++row) {
    const float* in = &x[row * dim];
    const float squares = segmented_sum<float>(SegmentCuts::of(dim), [&](std::size_t i, float sum) { return std::fma(in[i], in[i], sum); });
    const float r = 1.0F / std::sqrt(squares / static_cast<float>(dim) + eps);
    for (std::size_t i = 0; i < dim; ++i) y[row * dim + i] = (in[i] * r) * w[i];
    if (!inverse_rms.empty()) inverse_rms[row] = r;
  }
}

inline void rms_norm_backward(ThreadPool&, std::span<float> dx, std::span<const float> dy, std::span<const float> x, std::span<const float> w,
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

inline void swiglu(ThreadPool&, std::span<float> h, std::span<const float> gate, std::span<const float> up) {
  for (std::size_t i = 0; i < h.size(); ++i) h[i] = (gate[i] * numerics::sigmoid(gate[i])) * up[i];
}

inline void swiglu_backward(ThreadPool&, std::span<float> dgate, std::span<float> dup, std::span<const float> dh, std::span<const float> gate,
                     std::span<const float> up) {
  for (std::size_t i = 0; i < dh.size(); ++i) {
    const float s = numerics::sigmoid(gate[i]);
    const float slope = s * std::fma(gate[i], 1.0F - s, 1.0F);
    const float dg = (dh[i] * up[i]) * slope;
    dup[i] = dh[i] * (gate[i] * s);
    dgate[i] = dg;
  }
}

template <bool kBackward>
void rotate(std::span<float> x, std::span<const std::uint32_t> positions, std::size_t heads, const RopeTable& table) {
  const std::size_t half = table.half();
  for (std::size_t row = 0; row < positions.size(); ++row) {
    const auto cos = table.cos(positions[row]);
    const auto sin = table.sin(positions[row]);
    for (std::size_t head = 0; head < heads; ++head) {
      float* one = &x[(row * heads + head) * 2 * half];
      float* two = one + half;
      for (std::size_t i = 0; i < half; ++i) {
        const float s = kBackward ? -sin[i] : sin[i];
        const float a = std::fma(one[i], cos[i], -(two[i] * s));
        two[i] = std::fma(two[i], cos[i], one[i] * s);
        one[i] = a;
      }
    }
  }
}


inline void rope(ThreadPool&, std::span<float> x, std::span<const std::uint32_t> positions, std::size_t heads, const RopeTable& table) {
  rotate<false>(x, positions, heads, table);
}

inline void rope_backward(ThreadPool&, std::span<float> dx, std::span<const std::uint32_t> positions, std::size_t heads, const RopeTable& table) {
  rotate<true>(dx, positions, heads, table);
}

inline constexpr std::size_t kBlock = numerics::kAttentionBlock;

inline std::size_t first_key(const AttentionShape& shape, std::size_t position) {
  return shape.window == 0 || position + 1 <= shape.window ? 0 : position + 1 - shape.window;
}

inline float key_at(const AttentionShape& shape, const KeyValues& cache, std::size_t position, std::size_t kv_head, std::size_t d) {
  return cache.keys[position / kBlock * shape.block_floats() + (kv_head * shape.head_dim + d) * kBlock + position % kBlock];
}
inline float value_at(const AttentionShape& shape, const KeyValues& cache, std::size_t position, std::size_t kv_head, std::size_t d) {
  return cache.values[position / kBlock * shape.block_floats() + (kv_head * kBlock + position % kBlock) * shape.head_dim + d];
}

inline float score(const AttentionShape& shape, const KeyValues& cache, const float* q, std::size_t position, std::size_t kv_head) {
  float dot = 0.0F;
  for (std::size_t d = 0; d < shape.head_dim; ++d) dot = std::fma(q[d], key_at(shape, cache, position, kv_head, d), dot);
  return dot * shape.scale;
}

inline SoftmaxState attend(const AttentionShape& shape, const KeyValues& cache, std::size_t position, std::size_t kv_head, const float* q, float* out) {
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


inline void attention(ThreadPool&, const AttentionShape& shape, std::span<const AttentionSpan> spans, std::span<float> out, std::span<const float> q,
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

inline void attention_backward(ThreadPool&, const AttentionShape& shape, std::span<const AttentionSpan> spans, std::span<float> dq, std::span<float> dk,
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

inline LogSumExp tree(std::span<const LogSumExp> parts) {
  if (parts.size() == 1) return parts[0];
  return combine(tree(parts.first(parts.size() / 2)), tree(parts.subspan(parts.size() / 2)));
}

inline float scaled(float logit, float temperature) { return logit / temperature; }


inline void log_sum_exp(ThreadPool&, std::span<LogSumExp> states, std::span<const float> logits, const SegmentCuts& cuts, float temperature) {
  const std::size_t width = cuts.total();
  for (std::size_t row = 0; row < states.size(); ++row) {
    const float* z = &logits[row * width];
    std::array<LogSumExp, numerics::kSegments> parts{};
    for (std::size_t s = cuts.first; s < cuts.last; ++s) {
      if (cuts.size(s) == 0) continue;
      float maximum = scaled(z[cuts.offset[s]], temperature);
      for (std::size_t i = cuts.offset[s]; i < cuts.offset[s + 1]; ++i) {
        const float value = scaled(z[i], temperature);
        if (value > maximum) maximum = value;
      }
      maximum += 0.0F;  // −0 becomes +0: then the order of comparisons cannot show
      const auto shifted = [&](std::size_t i) { return scaled(z[i], temperature) - maximum; };
      parts[s].maximum = maximum;
      parts[s].sum = interleaved_sum<float>(cuts.offset[s], cuts.offset[s + 1], [&](std::size_t i, float sum) { return sum + numerics::exp(shifted(i)); });
      parts[s].weighted = interleaved_sum<float>(cuts.offset[s], cuts.offset[s + 1], [&](std::size_t i, float sum) {
        return std::fma(numerics::exp(shifted(i)), shifted(i), sum);
      });
    }
    states[row] = tree(std::span<const LogSumExp>(parts).subspan(cuts.first, cuts.held()));
  }
}

inline void log_probability_gradient(ThreadPool&, std::span<float> dlogits, std::span<const float> logits, std::span<const LogSumExp> whole,
                              std::span<const std::uint32_t> targets, std::span<const float> coefficients, std::size_t first, float temperature) {
  const std::size_t width = logits.size() / whole.size();
  for (std::size_t row = 0; row < whole.size(); ++row) {
    const float c = coefficients[row] / temperature;
    for (std::size_t i = 0; i < width; ++i) {
      const float p = numerics::exp(scaled(logits[row * width + i], temperature) - whole[row].maximum) / whole[row].sum;
      const float hit = first + i == targets[row] ? 1.0F : 0.0F;
      dlogits[row * width + i] = coefficients[row] == 0.0F ? 0.0F : c * (hit - p);
    }
  }
}

inline void add_entropy_gradient(ThreadPool&, std::span<float> dlogits, std::span<const float> logits, std::span<const LogSumExp> whole,
                          std::span<const float> coefficients, float temperature) {
  const std::size_t width = logits.size() / whole.size();
  for (std::size_t row = 0; row < whole.size(); ++row) {
    const float c = coefficients[row] / temperature;
    const auto shift = static_cast<float>(entropy(whole[row]) - numerics::log(static_cast<double>(whole[row].sum)));
    for (std::size_t i = 0; i < width && coefficients[row] != 0.0F; ++i) {
      const float z = scaled(logits[row * width + i], temperature) - whole[row].maximum;
      const float p = numerics::exp(z) / whole[row].sum;
      float& d = dlogits[row * width + i];
      d = d - c * (p * (z + shift));
    }
  }
}

inline void adamw_update(ThreadPool&, std::span<float> p, std::span<float> m, std::span<float> v, std::span<const float> g, const AdamW& step) {
  const double keep = 1.0 - step.learning_rate * step.weight_decay;
  const double rest1 = 1.0 - step.beta1, rest2 = 1.0 - step.beta2;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double gradient = static_cast<double>(g[i]) * step.gradient_scale;
    const double mean = std::fma(step.beta1, static_cast<double>(m[i]), rest1 * gradient);
    const double square = std::fma(step.beta2, static_cast<double>(v[i]), (rest2 * gradient) * gradient);
    const double denominator = std::sqrt(square / step.correction2) + step.eps;
    const double change = step.learning_rate * (mean / step.correction1) / denominator;
    p[i] = static_cast<float>(std::fma(static_cast<double>(p[i]), keep, -change));
    m[i] = static_cast<float>(mean);
    v[i] = static_cast<float>(square);
  }
}

inline void row_squares(ThreadPool&, std::span<double> squares, std::span<const float> g, const SegmentCuts& cuts) {
  const std::size_t width = cuts.total();
  for (std::size_t row = 0; row < squares.size(); ++row) {
    squares[row] = segmented_sum<double>(cuts, [&](std::size_t i, double sum) {
      const auto value = static_cast<double>(g[row * width + i]);
      return std::fma(value, value, sum);
    });
  }
}

using numerics::kGradientBlock;
using Leaf = std::function<GradientNode(std::size_t first_row, std::size_t rows)>;

inline GradientNode dense_leaf(std::size_t size) {
  GradientNode leaf;
  leaf.present = true;
  leaf.data.resize(size);
  return leaf;
}

/// The tree of one sequence's blocks.
inline GradientNode sequence_gradient(ThreadPool& pool, const Leaf& leaf, std::size_t first_row, std::size_t length, std::size_t dim) {
  if (length <= kGradientBlock) return leaf(first_row, length);
  const std::size_t blocks = (length + kGradientBlock - 1) / kGradientBlock;
  const std::size_t split = numerics::split_point(blocks) * kGradientBlock;
  GradientNode left = sequence_gradient(pool, leaf, first_row, split, dim);
  GradientNode right = sequence_gradient(pool, leaf, first_row + split, length - split, dim);
  return merge(pool, std::move(left), std::move(right), dim);
}

inline GradientNodes all_sequences(ThreadPool& pool, std::span<const SequenceRows> sequences, std::uint64_t first, const Leaf& leaf, std::size_t dim = 0) {
  GradientNodes nodes;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    GradientNode node;
    if (sequences[i].length > 0) node = sequence_gradient(pool, leaf, sequences[i].first_row, sequences[i].length, dim);
    node.level = 0;
    node.index = first + i;
    GradientNodes one;
    one.push_back(std::move(node));
    append_nodes(pool, nodes, std::move(one), dim);
  }
  return nodes;
}


inline GradientNodes linear_gradient_weight(ThreadPool& pool, std::span<const float> dy, std::size_t outputs, std::span<const float> x, std::size_t inputs,
                                     std::span<const SequenceRows> sequences, std::uint64_t first) {
  return all_sequences(pool, sequences, first, [&](std::size_t first_row, std::size_t rows) {
    GradientNode leaf = dense_leaf(outputs * inputs);
    for (std::size_t o = 0; o < outputs; ++o) {
      for (std::size_t row = first_row; row < first_row + rows; ++row) {
        for (std::size_t i = 0; i < inputs; ++i) {
          leaf.data[o * inputs + i] = std::fma(dy[row * outputs + o], x[row * inputs + i], leaf.data[o * inputs + i]);
        }
      }
    }
    return leaf;
  });
}

inline GradientNodes bias_gradient(ThreadPool& pool, std::span<const float> dy, std::size_t outputs, std::span<const SequenceRows> sequences, std::uint64_t first) {
  return all_sequences(pool, sequences, first, [&](std::size_t first_row, std::size_t rows) {
    GradientNode leaf = dense_leaf(outputs);
    for (std::size_t row = first_row; row < first_row + rows; ++row) {
      for (std::size_t o = 0; o < outputs; ++o) leaf.data[o] += dy[row * outputs + o];
    }
    return leaf;
  });
}

inline GradientNodes head_norm_weight_gradient(ThreadPool& pool, std::span<const float> dy, std::span<const float> x, std::span<const float> inverse_rms,
                                        std::size_t heads, std::size_t head_dim, std::span<const SequenceRows> sequences, std::uint64_t first) {
  const std::size_t width = heads * head_dim;
  return all_sequences(pool, sequences, first, [&](std::size_t first_row, std::size_t rows) {
    GradientNode leaf = dense_leaf(width);
    for (std::size_t row = first_row; row < first_row + rows; ++row) {
      for (std::size_t i = 0; i < width; ++i) {
        const float normalised = x[row * width + i] * inverse_rms[row * heads + i / head_dim];
        leaf.data[i] = std::fma(dy[row * width + i], normalised, leaf.data[i]);
      }
    }
    return leaf;
  });
}

inline GradientNodes norm_weight_gradient(ThreadPool& pool, std::span<const float> dy, std::span<const float> x, std::span<const float> inverse_rms,
                                   std::size_t dim, std::span<const SequenceRows> sequences, std::uint64_t first) {
  return naive::head_norm_weight_gradient(pool, dy, x, inverse_rms, 1, dim, sequences, first);
}

inline GradientNodes embedding_gradient(ThreadPool& pool, std::span<const float> dx, std::size_t dim, std::span<const std::uint32_t> tokens,
                                 std::span<const SequenceRows> sequences, std::uint64_t first) {
  const auto leaf_of = [&](std::size_t first_row, std::size_t rows) {
    GradientNode leaf;
    leaf.present = true;
    leaf.sparse = true;
    const auto ids = tokens.subspan(first_row, rows);
    leaf.rows.assign(ids.begin(), ids.end());
    std::sort(leaf.rows.begin(), leaf.rows.end());
    leaf.rows.erase(std::unique(leaf.rows.begin(), leaf.rows.end()), leaf.rows.end());
    leaf.data.resize(leaf.rows.size() * dim);
    for (std::size_t row = first_row; row < first_row + rows; ++row) {
      const auto slot = static_cast<std::size_t>(std::lower_bound(leaf.rows.begin(), leaf.rows.end(), tokens[row]) - leaf.rows.begin());
      for (std::size_t d = 0; d < dim; ++d) leaf.data[slot * dim + d] += dx[row * dim + d];
    }
    return leaf;
  };
  return all_sequences(pool, sequences, first, leaf_of, dim);
}

}  // namespace troupe::models::naive
