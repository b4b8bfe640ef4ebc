// Compiled once a target; models/kernels/README.md has the tile's shape and what it reaches.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/linear.cpp"
#include <hwy/foreach_target.h>

#include "models/kernels/tile.hpp"

#include "models/kernels/linear.hpp"

#include <hwy/cache_control.h>

#include <algorithm>
#include <bit>
#include <vector>

HWY_BEFORE_NAMESPACE();
namespace troupe::models::HWY_NAMESPACE {

/// Rows × kTileWidth outputs: a chain a segment, the segments' tree as a stack, one level a trailing one of the segment's number.
struct LinearTile {
  const float* x;  ///< [depth][Rows]
  const float* panel;
  const SegmentCuts& cuts;
  float* y;
  std::size_t y_row, width;

  template <std::size_t Rows>
  HWY_INLINE void run() const {
    const Lanes d;
    constexpr std::size_t kLevels = 3;
    HWY_ALIGN float stack[kLevels][Rows][kTileWidth];
    Vector sums[Rows][kTileVectors];
    for (std::size_t s = cuts.first; s < cuts.last; ++s) {
      clear(sums);
      chain(sums, x + cuts.offset[s] * Rows, 1, Rows, panel + cuts.offset[s] * PackedMatrix::kPanel, PackedMatrix::kPanel, cuts.size(s));
      const std::size_t index = s - cuts.first;
      std::size_t level = 0;
      for (; (index >> level) % 2 == 1; ++level) {
#pragma GCC unroll 12
        for (std::size_t r = 0; r < Rows; ++r) {
          sums[r][0] = hn::Add(hn::Load(d, stack[level][r]), sums[r][0]);
          sums[r][1] = hn::Add(hn::Load(d, stack[level][r] + kLanes), sums[r][1]);
        }
      }
      if (s + 1 == cuts.last) break;
#pragma GCC unroll 12
      for (std::size_t r = 0; r < Rows; ++r) {
        hn::Store(sums[r][0], d, stack[level][r]);
        hn::Store(sums[r][1], d, stack[level][r] + kLanes);
      }
    }
    store(sums, y, y_row, width);
  }
};

/// Rows × Width columns of a panel, `Together` segments side by side: reading the weights is what a few rows cost, and several streams read faster than
/// one. The same chains and tree as LinearTile's.
template <std::size_t Rows, std::size_t Width, std::size_t Together>
struct FewRows {
  static constexpr std::size_t kVectors = Width / kLanes;
  static constexpr std::size_t kAhead = 32 * PackedMatrix::kPanel;  ///< a page, where the processor's own prefetch stops

  const float* x;
  std::size_t depth;
  const float* columns;
  const SegmentCuts& cuts;

  /// The chains of segments s … s + Together − 1 into sums[segment].
  HWY_INLINE void chains(std::size_t s, float (*sums)[Rows][Width]) const {
    const Lanes d;
    Vector parts[Together][Rows][kVectors];
#pragma GCC unroll 8
    for (std::size_t t = 0; t < Together; ++t) {
#pragma GCC unroll 8
      for (std::size_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kVectors; ++v) parts[t][r][v] = hn::Zero(d);
      }
    }
    std::size_t common = cuts.size(s);
    for (std::size_t t = 1; t < Together; ++t) common = std::min(common, cuts.size(s + t));
    const auto step = [&](std::size_t t, std::size_t k) HWY_ATTR {
      const float* b = columns + (cuts.offset[s + t] + k) * PackedMatrix::kPanel;
      hwy::Prefetch(b + kAhead);
      hwy::Prefetch(b + kAhead + 16);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < Rows; ++r) {
        const Vector each = hn::Set(d, x[r * depth + cuts.offset[s + t] + k]);
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kVectors; ++v) parts[t][r][v] = hn::MulAdd(each, hn::LoadU(d, b + v * kLanes), parts[t][r][v]);
      }
    };
    for (std::size_t k = 0; k < common; ++k) {
#pragma GCC unroll 8
      for (std::size_t t = 0; t < Together; ++t) step(t, k);
    }
#pragma GCC unroll 8
    for (std::size_t t = 0; t < Together; ++t) {
      for (std::size_t k = common; k < cuts.size(s + t); ++k) step(t, k);
#pragma GCC unroll 8
      for (std::size_t r = 0; r < Rows; ++r) {
#pragma GCC unroll 4
        for (std::size_t v = 0; v < kVectors; ++v) hn::Store(parts[t][r][v], d, sums[s + t - cuts.first][r] + v * kLanes);
      }
    }
  }

  void run(float* y, std::size_t y_row, std::size_t width) const {
    const Lanes d;
    HWY_ALIGN float sums[numerics::kSegments][Rows][Width];
    for (std::size_t s = cuts.first; s < cuts.last; s += Together) chains(s, sums);
    for (std::size_t apart = 1; apart < cuts.held(); apart *= 2) {
      for (std::size_t s = 0; s < cuts.held(); s += 2 * apart) {
        float* to = sums[s][0];
        for (std::size_t i = 0; i < Rows * Width; i += kLanes) {
          hn::Store(hn::Add(hn::Load(d, to + i), hn::Load(d, sums[s + apart][0] + i)), d, to + i);
        }
      }
    }
    for (std::size_t r = 0; r < Rows; ++r) std::copy_n(sums[0][r], width, y + r * y_row);
  }
};

constexpr std::size_t kFewRows = 12;  ///< up to here reading the weights costs more than multiplying them

struct FewRowsOfPanel {
  const float* x;
  const PackedMatrix& b;
  std::size_t panel;
  float* y;

  /// As many columns and segments together as the registers hold, and the shard has.
  template <std::size_t Rows>
  HWY_NOINLINE void run() const {
    constexpr std::size_t kSums = kTileRows * kTileVectors;
    constexpr std::size_t kWidth = Rows * PackedMatrix::kPanel / kLanes <= kSums ? PackedMatrix::kPanel : kTileWidth;
    constexpr std::size_t kTogether = std::min<std::size_t>(numerics::kSegments, std::bit_floor(kSums / (Rows * kWidth / kLanes)));
    const std::size_t first = panel * PackedMatrix::kPanel;
    for (std::size_t column = first; column < std::min(b.outputs(), first + PackedMatrix::kPanel); column += kWidth) {
      const float* columns = b.panel(panel) + (column - first);
      const std::size_t width = std::min(kWidth, b.outputs() - column);
      if (b.cuts().held() >= kTogether) {
        FewRows<Rows, kWidth, kTogether>{x, b.depth(), columns, b.cuts()}.run(y + column, b.outputs(), width);
      } else {
        FewRows<Rows, kWidth, 1>{x, b.depth(), columns, b.cuts()}.run(y + column, b.outputs(), width);
      }
    }
  }
};

/// Rows [begin, end) of panels [first, last). Where they are many, the rows are turned first, tile by tile, so that a tile reads its x in one stream; then one
/// panel after the other meets all of them.
void linear_panels(float* y, const float* x, std::size_t begin, std::size_t end, const PackedMatrix& b, std::size_t first, std::size_t last) {
  const std::size_t depth = b.depth();
  if (const std::size_t rows = end - begin; rows <= kFewRows) {
    const std::size_t tiles = (rows + kTileRows - 1) / kTileRows;
    for (std::size_t panel = first; panel < last; ++panel) {
      for (std::size_t tile = 0; tile < tiles; ++tile) {
        const std::size_t row = begin + rows * tile / tiles;
        with_rows(begin + rows * (tile + 1) / tiles - row, FewRowsOfPanel{x + row * depth, b, panel, y + row * b.outputs()});
      }
    }
    return;
  }
  thread_local std::vector<float> turned;
  turned.resize((end - begin) * depth);
  for (std::size_t row = begin; row < end; row += kTileRows) {
    const std::size_t rows = std::min(kTileRows, end - row);
    float* to = turned.data() + (row - begin) * depth;
    const float* from = x + row * depth;
    for (std::size_t k = 0; k < depth; ++k) {
      for (std::size_t r = 0; r < rows; ++r) to[k * rows + r] = from[r * depth + k];
    }
  }
  for (std::size_t panel = first; panel < last; ++panel) {
    for (std::size_t column = 0; column < PackedMatrix::kPanel; column += kTileWidth) {
      const std::size_t output = panel * PackedMatrix::kPanel + column;
      if (output >= b.outputs()) break;
      for (std::size_t row = begin; row < end; row += kTileRows) {
        const LinearTile tile{turned.data() + (row - begin) * depth, b.panel(panel) + column, b.cuts(),
                              y + row * b.outputs() + output, b.outputs(), std::min(kTileWidth, b.outputs() - output)};
        with_rows(std::min(kTileRows, end - row), tile);
      }
    }
  }
}

}  // namespace troupe::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::models {

HWY_EXPORT(linear_panels);

namespace {
constexpr std::size_t kPartFmas = std::size_t{1} << 18;  ///< below it, waking a thread costs more than it saves
constexpr std::size_t kPanelsMax = 16;                   ///< of a part, so that threads get even shares
constexpr std::size_t kRowsMax = 96;                     ///< of a part: whole tiles of every target
}  // namespace

void linear(ThreadPool& pool, std::span<float> y, std::span<const float> x, std::size_t rows, const PackedMatrix& b) {
  if (rows == 0) return;
  const std::size_t chunks = (rows + kRowsMax - 1) / kRowsMax;
  const std::size_t groups = (b.panels() + kPanelsMax - 1) / kPanelsMax;
  const std::size_t fmas = std::max<std::size_t>(1, std::min(rows, kRowsMax) * b.depth() * PackedMatrix::kPanel * std::min(kPanelsMax, b.panels()));
  pool.parallel_ranges(chunks * groups, std::max<std::size_t>(1, kPartFmas / fmas), [&](std::size_t begin, std::size_t end) {
    for (std::size_t part = begin; part < end; ++part) {
      const std::size_t row = part / groups * kRowsMax;
      const std::size_t panel = part % groups * kPanelsMax;
      HWY_DYNAMIC_DISPATCH(linear_panels)(y.data(), x.data(), row, std::min(rows, row + kRowsMax), b, panel, std::min(b.panels(), panel + kPanelsMax));
    }
  });
}

void add_bias(ThreadPool&, std::span<float> y, std::span<const float> bias, std::size_t rows) {
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < bias.size(); ++i) y[row * bias.size() + i] += bias[i];
  }
}

void add(ThreadPool&, std::span<float> y, std::span<const float> x) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += x[i];
}

void scale(ThreadPool&, std::span<float> y, float factor) {
  for (float& value : y) value *= factor;
}

}  // namespace troupe::models
#endif
