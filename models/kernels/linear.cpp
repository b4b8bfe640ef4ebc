// Compiled once a target; models/kernels/README.md has the tile's shape and what it reaches.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/linear.cpp"
#include <hwy/foreach_target.h>

#include "models/kernels/tile.hpp"

#include "models/kernels/linear.hpp"

#include <algorithm>
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

/// Rows [begin, end) of panels [first, last). The rows are turned first, tile by tile, so that a tile reads its x in one stream; then one
/// panel after the other meets all of them.
void linear_panels(float* y, const float* x, std::size_t begin, std::size_t end, const PackedMatrix& b, std::size_t first, std::size_t last) {
  thread_local std::vector<float> turned;
  const std::size_t depth = b.depth();
  const bool is_one_row = end - begin == 1;
  if (!is_one_row) {
    turned.resize((end - begin) * depth);
    for (std::size_t row = begin; row < end; row += kTileRows) {
      const std::size_t rows = std::min(kTileRows, end - row);
      float* to = turned.data() + (row - begin) * depth;
      const float* from = x + row * depth;
      for (std::size_t k = 0; k < depth; ++k) {
        for (std::size_t r = 0; r < rows; ++r) to[k * rows + r] = from[r * depth + k];
      }
    }
  }
  for (std::size_t panel = first; panel < last; ++panel) {
    for (std::size_t column = 0; column < PackedMatrix::kPanel; column += kTileWidth) {
      const std::size_t output = panel * PackedMatrix::kPanel + column;
      if (output >= b.outputs()) break;
      for (std::size_t row = begin; row < end; row += kTileRows) {
        const LinearTile tile{is_one_row ? x + row * depth : turned.data() + (row - begin) * depth, b.panel(panel) + column, b.cuts(),
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
