// Compiled once a target. A tile is some query rows of one key/value head against one block of keys: scores with lanes over keys, weighted
// values with lanes over head_dim. Rows are copied to widths of whole tiles, so that no tile has a ragged edge.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/attention.cpp"
#include <hwy/foreach_target.h>

#include "models/kernels/tile.hpp"

#include "models/kernels/attention.hpp"

#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <cmath>
#include <vector>

#ifndef TROUPE_KERNELS_ATTENTION_PARTS
#define TROUPE_KERNELS_ATTENTION_PARTS
namespace troupe::models {

/// Query rows [begin, end) of a span for one key/value head: row i is position i / group, query head i % group.
struct AttentionPart {
  const AttentionSpan* span = nullptr;
  std::size_t kv_head = 0;
  std::size_t begin = 0, end = 0;
};

struct AttentionGradients {
  float* dq;
  float* dk;
  float* dv;
  const float* dout;
  const float* out;
  const float* q;
  const SoftmaxState* states;
};

inline std::size_t first_key(const AttentionShape& shape, std::size_t position) {
  return shape.window == 0 || position + 1 <= shape.window ? 0 : position + 1 - shape.window;
}

}  // namespace troupe::models
#endif

HWY_BEFORE_NAMESPACE();
namespace troupe::models::HWY_NAMESPACE {

constexpr std::size_t kBlock = numerics::kAttentionBlock;
constexpr std::size_t padded(std::size_t dim) { return (dim + kTileWidth - 1) / kTileWidth * kTileWidth; }

using Scratch = hwy::AlignedFreeUniquePtr<float[]>;

/// The lanes of keys j … that lie in [begin, end).
HWY_INLINE hn::Mask<Lanes> lanes_between(std::size_t j, std::size_t begin, std::size_t end) {
  const Lanes d;
  const auto below_end = hn::FirstN(d, end - j);
  return begin <= j ? below_end : hn::And(below_end, hn::Not(hn::FirstN(d, begin - j)));
}

/// The scores in [begin, end) become exp(score − maximum), in place. Absent keys take part in nothing: exp of a very negative score in their
/// place would cost what denormal results cost.
HWY_INLINE SoftmaxState softmax_block(float* scores, std::size_t begin, std::size_t end) {
  const Lanes d;
  const std::size_t first = begin / kLanes * kLanes;
  Vector highest = hn::Set(d, -INFINITY);
  for (std::size_t j = first; j < end; j += kLanes) {
    const Vector score = hn::Load(d, scores + j);
    highest = hn::IfThenElse(hn::And(hn::Gt(score, highest), lanes_between(j, begin, end)), score, highest);
  }
  HWY_ALIGN float lanes[kLanes];
  hn::Store(highest, d, lanes);
  SoftmaxState state{.maximum = -INFINITY, .sum = 0.0F};
  for (const float lane : lanes) state.maximum = lane > state.maximum ? lane : state.maximum;
  state.maximum += 0.0F;
  const Vector maximum = hn::Set(d, state.maximum);
  Vector low = hn::Zero(d), high = hn::Zero(d);
  for (std::size_t j = first; j < end; j += kLanes) {
    const auto is_here = lanes_between(j, begin, end);
    const Vector p = hn::IfThenElseZero(is_here, exp_of(hn::IfThenElseZero(is_here, hn::Sub(hn::Load(d, scores + j), maximum))));
    hn::Store(p, d, scores + j);
    // An absent key's +0 changes no partial sum, for these are never −0.
    Vector& partials = j / kLanes % kPartialVectors == 0 ? low : high;
    partials = hn::Add(partials, p);
  }
  state.sum = partials_sum(low, high);
  return state;
}

/// The softmax states of a tile's rows, a lane each.
struct RunningSums {
  static_assert(kTileRows <= kLanes);
  HWY_ALIGN float maximum[kLanes] = {};
  HWY_ALIGN float sum[kLanes] = {};
};

/// Both states as one, and the factors exp(maximum − common maximum) of either side.
HWY_INLINE RunningSums combine(const RunningSums& left, const RunningSums& right, float* before, float* now) {
  const Lanes d;
  const Vector l = hn::Load(d, left.maximum), r = hn::Load(d, right.maximum);
  const Vector maximum = hn::IfThenElse(hn::Gt(l, r), l, r);
  const Vector b = exp_of(hn::Sub(l, maximum)), n = exp_of(hn::Sub(r, maximum));
  hn::Store(b, d, before);
  hn::Store(n, d, now);
  RunningSums both;
  hn::Store(maximum, d, both.maximum);
  hn::Store(hn::MulAdd(hn::Load(d, right.sum), n, hn::Mul(hn::Load(d, left.sum), b)), d, both.sum);
  return both;
}

/// Up to kTileRows query rows against all of their keys. q [rows, head_dim], out [rows, padded(head_dim)].
struct AttentionTile {
  const AttentionShape& shape;
  const KeyValues& cache;
  std::size_t kv_head;
  const float* q;
  const std::size_t* position;
  float* out;
  float* values;  ///< [64, padded(head_dim)], for a head_dim that is no multiple of a tile
  RunningSums& all;

  template <std::size_t Rows>
  HWY_INLINE void score(const float* keys, float (&scores)[Rows][kBlock], std::size_t last) const {
    const Lanes d;
    const Vector scale = hn::Set(d, shape.scale);
    for (std::size_t column = 0; column < last; column += kTileWidth) {
      Vector sums[Rows][kTileVectors];
      clear(sums);
      chain(sums, q, shape.head_dim, 1, keys + column, kBlock, shape.head_dim);
#pragma GCC unroll 12
      for (std::size_t r = 0; r < Rows; ++r) {
        hn::Store(hn::Mul(sums[r][0], scale), d, scores[r] + column);
        hn::Store(hn::Mul(sums[r][1], scale), d, scores[r] + column + kLanes);
      }
    }
  }

  /// The block's values with rows of whole tiles.
  const float* wide_values(const float* from, std::size_t first, std::size_t last) const {
    const std::size_t dim = shape.head_dim;
    if (dim % kTileWidth == 0) return from;
    for (std::size_t j = first; j < last; ++j) std::copy_n(from + j * dim, dim, values + j * padded(dim));
    return values;
  }

  template <std::size_t Rows>
  HWY_INLINE void block(std::size_t index) const {
    const Lanes d;
    const std::size_t base = index * kBlock;
    std::size_t begin[Rows], end[Rows], first = kBlock, last = 0;
    for (std::size_t r = 0; r < Rows; ++r) {
      begin[r] = std::min(kBlock, std::max(first_key(shape, position[r]), base) - base);
      end[r] = std::max(base, std::min(position[r] + 1, base + kBlock)) - base;
      if (begin[r] >= end[r]) begin[r] = end[r] = 0;
      if (begin[r] < end[r]) first = std::min(first, begin[r]);
      last = std::max(last, end[r]);
    }
    if (last == 0) return;
    HWY_ALIGN float scores[Rows][kBlock];
    score<Rows>(cache.keys + index * shape.block_floats() + kv_head * shape.head_dim * kBlock, scores, last);
    HWY_ALIGN float before[kLanes] = {}, now[kLanes] = {};
    bool is_first[Rows] = {};
    RunningSums part;
    for (std::size_t r = 0; r < Rows; ++r) {
      if (begin[r] >= end[r]) continue;
      const SoftmaxState state = softmax_block(scores[r], begin[r], end[r]);
      part.maximum[r] = state.maximum;
      part.sum[r] = state.sum;
      is_first[r] = all.sum[r] == 0.0F;
    }
    RunningSums both = combine(all, part, before, now);
    for (std::size_t r = 0; r < Rows; ++r) {
      if (begin[r] >= end[r]) continue;
      all.maximum[r] = is_first[r] ? part.maximum[r] : both.maximum[r];
      all.sum[r] = is_first[r] ? part.sum[r] : both.sum[r];
    }
    const float* from = wide_values(cache.values + index * shape.block_floats() + kv_head * kBlock * shape.head_dim, first, last);
    const std::size_t width = padded(shape.head_dim);
    for (std::size_t column = 0; column < width; column += kTileWidth) {
      Vector sums[Rows][kTileVectors];
      clear(sums);
      ranged_chain(sums, scores[0], kBlock, 1, from + column, width, begin, end);
#pragma GCC unroll 12
      for (std::size_t r = 0; r < Rows; ++r) {
        if (begin[r] >= end[r]) continue;
        float* to = out + r * width + column;
        if (!is_first[r]) {
          const Vector b = hn::Set(d, before[r]), n = hn::Set(d, now[r]);
          sums[r][0] = hn::MulAdd(sums[r][0], n, hn::Mul(hn::Load(d, to), b));
          sums[r][1] = hn::MulAdd(sums[r][1], n, hn::Mul(hn::Load(d, to + kLanes), b));
        }
        hn::Store(sums[r][0], d, to);
        hn::Store(sums[r][1], d, to + kLanes);
      }
    }
  }

  template <std::size_t Rows>
  HWY_NOINLINE void run() const {
    for (std::size_t index = first_key(shape, position[0]) / kBlock; index <= position[Rows - 1] / kBlock; ++index) block<Rows>(index);
  }
};

void attend(const AttentionShape& shape, const AttentionPart& part, float* out, const float* q, SoftmaxState* states) {
  const std::size_t dim = shape.head_dim, width = padded(dim);
  Scratch scratch = hwy::AllocateAligned<float>(kTileRows * (dim + width) + kBlock * width);
  float* const result = scratch.get();
  float* const values = result + kTileRows * width;
  float* const queries = values + kBlock * width;
  std::size_t at[kTileRows], position[kTileRows];
  for (std::size_t begin = part.begin; begin < part.end; begin += kTileRows) {
    const std::size_t rows = std::min(kTileRows, part.end - begin);
    RunningSums all;
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t i = (begin + r) / shape.group();
      position[r] = part.span->first_position + i;
      at[r] = (part.span->first_row + i) * shape.heads + part.kv_head * shape.group() + (begin + r) % shape.group();
      std::copy_n(q + at[r] * dim, dim, queries + r * dim);
    }
    with_rows(rows, AttentionTile{shape, part.span->cache, part.kv_head, queries, position, result, values, all});
    for (std::size_t r = 0; r < rows; ++r) {
      const Vector sum = hn::Set(Lanes(), all.sum[r]);
      for_vectors(0, dim, [&](std::size_t d, std::size_t n) HWY_ATTR { store(hn::Div(load(result + r * width + d, n), sum), out + at[r] * dim + d, n); });
      if (states != nullptr) states[at[r]] = {all.maximum[r], all.sum[r]};
    }
  }
}

/// The gradients of one key/value head of one sequence, one query head after another.
class HeadGradients {
 public:
  HeadGradients(const AttentionShape& shape, const AttentionSpan& span, std::size_t kv_head, const AttentionGradients& to)
      : shape_(shape), span_(span), kv_head_(kv_head), to_(to), dim_(shape.head_dim), width_(padded(dim_)), length_(span.length),
        // Dead rows behind the last let every tile load whole blocks.
        rows_((length_ + kBlock - 1) / kBlock * kBlock), delta_(rows_),
        scratch_(hwy::AllocateAligned<float>(rows_ * width_ * (3 + 2 * shape.group()) + kBlock * (2 * kBlock + width_ + dim_))) {
    queries_ = scratch_.get();
    douts_ = queries_ + rows_ * width_;
    dqueries_ = douts_ + rows_ * width_;
    dkeys_ = dqueries_ + rows_ * width_;
    dvalues_ = dkeys_ + rows_ * width_ * shape.group();
    p_ = dvalues_ + rows_ * width_ * shape.group();
    ds_ = p_ + kBlock * kBlock;
    keys_ = ds_ + kBlock * kBlock;
    values_ = keys_ + kBlock * width_;
  }

  void run() {
    std::fill(scratch_.get(), p_, 0.0F);
    std::fill(keys_, values_, 0.0F);
    for (std::size_t g = 0; g < shape_.group(); ++g) query_head(g);
    fold(dkeys_, to_.dk);
    fold(dvalues_, to_.dv);
  }

 private:
  std::size_t row_of(std::size_t i, std::size_t g) const { return (span_.first_row + i) * shape_.heads + kv_head_ * shape_.group() + g; }

  void query_head(std::size_t g) {
    for (std::size_t i = 0; i < length_; ++i) {
      std::copy_n(to_.q + row_of(i, g) * dim_, dim_, queries_ + i * width_);
      std::copy_n(to_.dout + row_of(i, g) * dim_, dim_, douts_ + i * width_);
    }
    std::fill(dqueries_, dqueries_ + rows_ * width_, 0.0F);
    deltas(g);
    for (std::size_t base = 0; base < length_; base += kBlock) {
      turn_block(base);
      for (std::size_t chunk = base; chunk < length_ && first_key(shape_, chunk) < base + kBlock; chunk += kBlock) {
        const std::size_t chunk_end = std::min(length_, chunk + kBlock);
        for (std::size_t i = chunk; i < chunk_end; i += kTileRows) {
          with_rows(std::min(kTileRows, chunk_end - i), QueryTile{*this, g, base, chunk, i});
        }
        const std::size_t block_end = std::min(length_, base + kBlock);
        for (std::size_t j = base; j < block_end; j += kTileRows) {
          with_rows(std::min(kTileRows, block_end - j), KeyTile{*this, g, base, chunk, chunk_end, j});
        }
      }
    }
    for (std::size_t i = 0; i < length_; ++i) std::copy_n(dqueries_ + i * width_, dim_, to_.dq + row_of(i, g) * dim_);
  }

  /// delta = dout · out, one chain a row, eight rows side by side.
  void deltas(std::size_t g) {
    const hn::CappedTag<float, 1> d;
    constexpr std::size_t kTogether = 8;
    for (std::size_t i = 0; i < length_; i += kTogether) {
      const float* out[kTogether];
      const float* dout[kTogether];
      for (std::size_t r = 0; r < kTogether; ++r) {
        out[r] = to_.out + row_of(std::min(i + r, length_ - 1), g) * dim_;
        dout[r] = to_.dout + row_of(std::min(i + r, length_ - 1), g) * dim_;
      }
      hn::Vec<decltype(d)> sums[kTogether];
#pragma GCC unroll 8
      for (std::size_t r = 0; r < kTogether; ++r) sums[r] = hn::Zero(d);
      for (std::size_t k = 0; k < dim_; ++k) {
#pragma GCC unroll 8
        for (std::size_t r = 0; r < kTogether; ++r) sums[r] = hn::MulAdd(hn::Set(d, dout[r][k]), hn::Set(d, out[r][k]), sums[r]);
      }
#pragma GCC unroll 8
      for (std::size_t r = 0; r < kTogether; ++r) delta_[i + r] = hn::GetLane(sums[r]);
    }
  }

  /// keys_ [64, width], values_ [head_dim, 64] of the block at `base`.
  void turn_block(std::size_t base) {
    const std::size_t block = base / kBlock * shape_.block_floats();
    const float* keys = span_.cache.keys + block + kv_head_ * dim_ * kBlock;
    if (keys == block_keys_) return;  // a short sequence: its one block serves the whole group
    block_keys_ = keys;
    turn(keys_, width_, keys, kBlock, dim_, kBlock);
    turn(values_, kBlock, span_.cache.values + block + kv_head_ * kBlock * dim_, dim_, kBlock, dim_);
  }

  /// to[column][row] = from[row][column], in squares that stay in the first cache's lines.
  static void turn(float* HWY_RESTRICT to, std::size_t to_row, const float* HWY_RESTRICT from, std::size_t from_row, std::size_t rows, std::size_t columns) {
    constexpr std::size_t kSquare = 8;
    for (std::size_t r0 = 0; r0 < rows; r0 += kSquare) {
      const std::size_t r1 = std::min(rows, r0 + kSquare);
      for (std::size_t c = 0; c < columns; ++c) {
        for (std::size_t r = r0; r < r1; ++r) to[c * to_row + r] = from[r * from_row + c];
      }
    }
  }

  /// p and ds of rows [i, i + Rows) against the block, then their share of dq.
  struct QueryTile {
    HeadGradients& head;
    std::size_t g, base, chunk, i;

    template <std::size_t Rows>
    HWY_NOINLINE void run() const {
      const HeadGradients& h = head;
      const Lanes d;
      const Vector scale = hn::Set(d, h.shape_.scale);
      std::size_t begin[Rows], end[Rows];
      for (std::size_t r = 0; r < Rows; ++r) {
        begin[r] = std::min(kBlock, std::max(first_key(h.shape_, i + r), base) - base);
        end[r] = std::min(i + r + 1, base + kBlock) - base;
        if (begin[r] >= end[r]) begin[r] = end[r] = 0;
      }
      const std::size_t last = *std::max_element(end, end + Rows);
      for (std::size_t column = 0; column < last; column += kTileWidth) {
        Vector scores[Rows][kTileVectors];
        clear(scores);
        chain(scores, h.queries_ + i * h.width_, h.width_, 1, h.block_keys_ + column, kBlock, h.dim_);
        for (std::size_t r = 0; r < Rows; ++r) {
          const SoftmaxState& state = h.to_.states[h.row_of(i + r, g)];
          const Vector maximum = hn::Set(d, state.maximum), sum = hn::Set(d, state.sum);
          for (std::size_t v = 0; v < kTileVectors; ++v) {
            const Vector p = hn::Div(exp_of(hn::Sub(hn::Mul(scores[r][v], scale), maximum)), sum);
            hn::Store(p, d, h.p_ + (i + r - chunk) * kBlock + column + v * kLanes);
          }
        }
        Vector dp[Rows][kTileVectors];
        clear(dp);
        chain(dp, h.douts_ + i * h.width_, h.width_, 1, h.values_ + column, kBlock, h.dim_);
        for (std::size_t r = 0; r < Rows; ++r) {
          const Vector delta = hn::Set(d, h.delta_[i + r]);
          for (std::size_t v = 0; v < kTileVectors; ++v) {
            const std::size_t to = (i + r - chunk) * kBlock + column + v * kLanes;
            hn::Store(hn::Mul(hn::Mul(hn::Load(d, h.p_ + to), hn::Sub(dp[r][v], delta)), scale), d, h.ds_ + to);
          }
        }
      }
      for (std::size_t column = 0; column < h.width_; column += kTileWidth) {
        Vector sums[Rows][kTileVectors];
        float* to = h.dqueries_ + i * h.width_ + column;
        read(sums, to, h.width_);
        ranged_chain(sums, h.ds_ + (i - chunk) * kBlock, kBlock, 1, h.keys_ + column, h.width_, begin, end);
        store(sums, to, h.width_, kTileWidth);
      }
    }
  };

  /// The chunk's share of dk and dv of keys [j, j + Rows).
  struct KeyTile {
    HeadGradients& head;
    std::size_t g, base, chunk, chunk_end, j;

    template <std::size_t Rows>
    HWY_NOINLINE void run() const {
      const HeadGradients& h = head;
      std::size_t begin[Rows], end[Rows];
      for (std::size_t r = 0; r < Rows; ++r) {
        begin[r] = std::max(j + r, chunk) - chunk;
        const std::size_t last = h.shape_.window == 0 ? chunk_end : std::min(chunk_end, j + r + h.shape_.window);
        end[r] = std::max(last, chunk) - chunk;
        if (begin[r] >= end[r]) begin[r] = end[r] = 0;
      }
      const std::size_t at = (g * h.rows_ + j) * h.width_;
      for (std::size_t column = 0; column < h.width_; column += kTileWidth) {
        Vector sums[Rows][kTileVectors];
        read(sums, h.dkeys_ + at + column, h.width_);
        ranged_chain(sums, h.ds_ + j - base, 1, kBlock, h.queries_ + chunk * h.width_ + column, h.width_, begin, end);
        store(sums, h.dkeys_ + at + column, h.width_, kTileWidth);
        read(sums, h.dvalues_ + at + column, h.width_);
        ranged_chain(sums, h.p_ + j - base, 1, kBlock, h.douts_ + chunk * h.width_ + column, h.width_, begin, end);
        store(sums, h.dvalues_ + at + column, h.width_, kTileWidth);
      }
    }
  };

  /// The tree over the group's query heads, in place: the sum of heads [first, first + count) is left in `first`.
  void add_heads(float* each, std::size_t first, std::size_t count) const {
    if (count == 1) return;
    const std::size_t split = numerics::split_point(count);
    add_heads(each, first, split);
    add_heads(each, first + split, count - split);
    const Lanes d;
    float* to = each + first * rows_ * width_;
    const float* from = each + (first + split) * rows_ * width_;
    for (std::size_t i = 0; i < length_ * width_; i += kLanes) hn::Store(hn::Add(hn::Load(d, to + i), hn::Load(d, from + i)), d, to + i);
  }

  void fold(float* each, float* to) const {
    add_heads(each, 0, shape_.group());
    for (std::size_t j = 0; j < length_; ++j) std::copy_n(each + j * width_, dim_, to + ((span_.first_row + j) * shape_.kv_heads + kv_head_) * dim_);
  }

  const AttentionShape& shape_;
  const AttentionSpan& span_;
  std::size_t kv_head_;
  const AttentionGradients& to_;
  std::size_t dim_, width_, length_, rows_;
  std::vector<float> delta_;
  Scratch scratch_;
  const float* block_keys_ = nullptr;
  float *queries_, *douts_, *dqueries_, *dkeys_, *dvalues_, *p_, *ds_, *keys_, *values_;
};

void head_gradients(const AttentionShape& shape, const AttentionSpan& span, std::size_t kv_head, const AttentionGradients& to) {
  HeadGradients(shape, span, kv_head, to).run();
}

}  // namespace troupe::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::models {

HWY_EXPORT(attend);
HWY_EXPORT(head_gradients);

namespace {
constexpr std::size_t kPartRows = 12;                    ///< whole tiles of every target
constexpr std::size_t kPartFmas = std::size_t{1} << 18;  ///< below it, waking a thread costs more than it saves
}  // namespace

void store_key_values(const AttentionShape& shape, float* keys, float* values, std::span<const float> k, std::span<const float> v,
                      std::size_t first_position, std::size_t length) {
  constexpr std::size_t kBlock = numerics::kAttentionBlock;
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

void attention(ThreadPool& pool, const AttentionShape& shape, std::span<const AttentionSpan> spans, std::span<float> out, std::span<const float> q,
               std::span<SoftmaxState> states) {
  std::vector<AttentionPart> parts;
  std::size_t fmas = 0;
  for (const AttentionSpan& span : spans) {
    const std::size_t rows = span.length * shape.group();
    fmas += span.length * shape.heads * shape.head_dim * 2 * (span.first_position + span.length);
    for (std::size_t kv_head = 0; kv_head < shape.kv_heads; ++kv_head) {
      for (std::size_t begin = 0; begin < rows; begin += kPartRows) parts.push_back({&span, kv_head, begin, std::min(rows, begin + kPartRows)});
    }
  }
  if (parts.empty()) return;
  const std::size_t grain = kPartFmas / std::max<std::size_t>(1, fmas / parts.size());
  pool.parallel_ranges(parts.size(), std::max<std::size_t>(1, grain), [&](std::size_t begin, std::size_t end) {
    for (std::size_t part = begin; part < end; ++part) {
      HWY_DYNAMIC_DISPATCH(attend)(shape, parts[part], out.data(), q.data(), states.empty() ? nullptr : states.data());
    }
  });
}

void attention_backward(ThreadPool& pool, const AttentionShape& shape, std::span<const AttentionSpan> spans, std::span<float> dq, std::span<float> dk,
                        std::span<float> dv, std::span<const float> dout, std::span<const float> out, std::span<const float> q,
                        std::span<const SoftmaxState> states) {
  const AttentionGradients to{dq.data(), dk.data(), dv.data(), dout.data(), out.data(), q.data(), states.data()};
  pool.parallel_ranges(spans.size() * shape.kv_heads, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t part = begin; part < end; ++part) {
      HWY_DYNAMIC_DISPATCH(head_gradients)(shape, spans[part / shape.kv_heads], part % shape.kv_heads, to);
    }
  });
}

}  // namespace troupe::models
#endif
