#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/outer_products.cpp"
#include <hwy/foreach_target.h>

#include "models/kernels/tile.hpp"

#include "models/kernels/outer_products.hpp"

#include <hwy/aligned_allocator.h>

#include <algorithm>

#include "actors/base/check.hpp"

#ifndef TROUPE_KERNELS_OUTER_PANELS
#define TROUPE_KERNELS_OUTER_PANELS
namespace troupe::models {

/// The rows of all steps one after another, columns in panels [panel][row][width]: a tile then reads two streams, whatever the strides were.
/// Both widths are whole tiles of every target.
constexpr std::size_t kOutputPanel = 12;
constexpr std::size_t kInputPanel = 32;
constexpr std::size_t kTreeDepthMax = 64;

struct OuterPanels {
  const float* dy;
  std::size_t outputs;
  const float* x;
  std::size_t inputs;
  std::size_t rows;
  std::span<const TreeStep> steps;
};

}  // namespace troupe::models
#endif

HWY_BEFORE_NAMESPACE();
namespace troupe::models::HWY_NAMESPACE {

struct OuterTile {
  const float* dy;
  const float* x;
  std::span<const TreeStep> steps;
  float* out;
  std::size_t out_row, width;

  template <std::size_t Rows>
  HWY_NOINLINE void run() const {
    const Lanes d;
    HWY_ALIGN float stack[kTreeDepthMax][Rows][kTileWidth];
    std::size_t top = 0, row = 0;
    Vector sums[Rows][kTileVectors];
    for (std::size_t i = 0; i < steps.size(); ++i) {
      clear(sums);
      chain(sums, dy + row * kOutputPanel, 1, kOutputPanel, x + row * kInputPanel, kInputPanel, steps[i].rows);
      row += steps[i].rows;
      for (std::size_t merge = 0; merge < steps[i].merges; ++merge) {
        --top;
#pragma GCC unroll 12
        for (std::size_t r = 0; r < Rows; ++r) {
          sums[r][0] = hn::Add(hn::Load(d, stack[top][r]), sums[r][0]);
          sums[r][1] = hn::Add(hn::Load(d, stack[top][r] + kLanes), sums[r][1]);
        }
      }
      if (i + 1 == steps.size()) break;
#pragma GCC unroll 12
      for (std::size_t r = 0; r < Rows; ++r) {
        hn::Store(sums[r][0], d, stack[top][r]);
        hn::Store(sums[r][1], d, stack[top][r] + kLanes);
      }
      ++top;
    }
    store(sums, out, out_row, width);
  }
};

/// One output panel by one input panel of out.
void outer_panel(float* out, const OuterPanels& panels, std::size_t output_panel, std::size_t input_panel) {
  const std::size_t output = output_panel * kOutputPanel, input = input_panel * kInputPanel;
  const std::size_t outputs = std::min(kOutputPanel, panels.outputs - output), inputs = std::min(kInputPanel, panels.inputs - input);
  const float* dy = panels.dy + output * panels.rows;
  const float* x = panels.x + input * panels.rows;
  for (std::size_t i = 0; i < inputs; i += kTileWidth) {
    for (std::size_t o = 0; o < outputs; o += kTileRows) {
      const OuterTile tile{dy + o, x + i, panels.steps, out + (output + o) * panels.inputs + input + i, panels.inputs, std::min(kTileWidth, inputs - i)};
      with_rows(std::min(kTileRows, outputs - o), tile);
    }
  }
}

void sum_rows(float* sums, const float* dy, std::size_t rows, std::size_t width) {
  for_vectors(0, width, [&](std::size_t i, std::size_t n) HWY_ATTR {
    Vector sum = load(sums + i, n);
    for (std::size_t row = 0; row < rows; ++row) sum = hn::Add(sum, load(dy + row * width + i, n));
    store(sum, sums + i, n);
  });
}

void sum_normalised_rows(float* sums, const float* dy, const float* x, const float* inverse_rms, std::size_t rows, std::size_t heads, std::size_t dim) {
  const std::size_t width = heads * dim;
  for (std::size_t head = 0; head < heads; ++head) {
    for_vectors(head * dim, (head + 1) * dim, [&](std::size_t i, std::size_t n) HWY_ATTR {
      Vector sum = load(sums + i, n);
      for (std::size_t row = 0; row < rows; ++row) {
        const Vector normalised = hn::Mul(load(x + row * width + i, n), hn::Set(Lanes(), inverse_rms[row * heads + head]));
        sum = hn::MulAdd(load(dy + row * width + i, n), normalised, sum);
      }
      store(sum, sums + i, n);
    });
  }
}

}  // namespace troupe::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::models {

HWY_EXPORT(outer_panel);
HWY_EXPORT(sum_rows);
HWY_EXPORT(sum_normalised_rows);

namespace {

constexpr std::size_t kPartFmas = std::size_t{1} << 18;  ///< below it, waking a thread costs more than it saves
constexpr std::size_t kPartFloats = std::size_t{1} << 15;

/// The steps' rows of `from` [rows, width] in panels of kWidth columns, +0 beyond the last.
template <std::size_t kWidth>
void copy_panels(ThreadPool& pool, float* to, const float* from, std::size_t width, std::size_t rows, std::span<const TreeStep> steps) {
  const std::size_t panels = (width + kWidth - 1) / kWidth;
  pool.parallel_ranges(panels, std::max<std::size_t>(1, kPartFloats / (rows * kWidth)), [&](std::size_t begin, std::size_t end) {
    for (std::size_t panel = begin; panel < end; ++panel) {
      const std::size_t columns = std::min(kWidth, width - panel * kWidth);
      float* line = to + panel * kWidth * rows;
      for (const TreeStep& step : steps) {
        for (std::size_t row = step.first_row; row < step.first_row + step.rows; ++row, line += kWidth) {
          const float* source = from + row * width + panel * kWidth;
          if (columns == kWidth) {
            std::copy_n(source, kWidth, line);
          } else {
            std::fill(std::copy_n(source, columns, line), line + kWidth, 0.0F);
          }
        }
      }
    }
  });
}

std::size_t tree_depth(std::span<const TreeStep> steps) {
  std::size_t depth = 0, deepest = 0;
  for (const TreeStep& step : steps) {
    deepest = std::max(deepest, ++depth);
    TROUPE_CHECK(step.merges < depth, "a merge has two sides");
    depth -= step.merges;
  }
  TROUPE_CHECK(depth == 1, "a tree has one root");
  return deepest;
}

}  // namespace

void outer_products(ThreadPool& pool, float* out, const float* dy, std::size_t outputs, const float* x, std::size_t inputs, std::span<const TreeStep> steps) {
  TROUPE_CHECK(tree_depth(steps) <= kTreeDepthMax, "the stack holds the trees of 2^32 sequences of 2^31 positions");
  std::size_t rows = 0;
  for (const TreeStep& step : steps) rows += step.rows;
  const std::size_t output_panels = (outputs + kOutputPanel - 1) / kOutputPanel, input_panels = (inputs + kInputPanel - 1) / kInputPanel;
  const auto dy_panels = hwy::AllocateAligned<float>(output_panels * kOutputPanel * rows);
  const auto x_panels = hwy::AllocateAligned<float>(input_panels * kInputPanel * rows);
  copy_panels<kOutputPanel>(pool, dy_panels.get(), dy, outputs, rows, steps);
  copy_panels<kInputPanel>(pool, x_panels.get(), x, inputs, rows, steps);
  const OuterPanels panels{dy_panels.get(), outputs, x_panels.get(), inputs, rows, steps};
  const std::size_t grain = std::max<std::size_t>(1, kPartFmas / (kOutputPanel * kInputPanel * rows));
  // An input panel meets all outputs before the next: it stays in the second cache.
  pool.parallel_ranges(output_panels * input_panels, grain, [&](std::size_t begin, std::size_t end) {
    for (std::size_t part = begin; part < end; ++part) HWY_DYNAMIC_DISPATCH(outer_panel)(out, panels, part % output_panels, part / output_panels);
  });
}

void add_rows(float* sums, const float* dy, std::size_t rows, std::size_t width) { HWY_DYNAMIC_DISPATCH(sum_rows)(sums, dy, rows, width); }

void add_normalised_rows(float* sums, const float* dy, const float* x, const float* inverse_rms, std::size_t rows, std::size_t heads, std::size_t dim) {
  HWY_DYNAMIC_DISPATCH(sum_normalised_rows)(sums, dy, x, inverse_rms, rows, heads, dim);
}

}  // namespace troupe::models
#endif
