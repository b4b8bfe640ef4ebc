#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/outer_products.cpp"
#include <hwy/foreach_target.h>

#include "models/kernels/tile.hpp"

#include "models/kernels/outer_products.hpp"

#include <algorithm>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace troupe::models::HWY_NAMESPACE {

struct OuterTile {
  const float* dy;
  std::size_t outputs;
  const float* x;
  std::size_t inputs;
  std::size_t rows;
  float* out;

  template <std::size_t Rows>
  HWY_INLINE void run() const {
    Vector sums[Rows][kTileVectors];
    clear(sums);
    chain(sums, dy, 1, outputs, x, inputs, rows);
    store(sums, out, inputs, kTileWidth);
  }
};

/// Outputs [begin, end), a multiple of tiles of inputs wide; the last inputs come one by one.
void outer_rows(float* out, const float* dy, std::size_t outputs, const float* x, std::size_t inputs, std::size_t rows, std::size_t begin, std::size_t end) {
  std::size_t input = 0;
  for (; input + kTileWidth <= inputs; input += kTileWidth) {
    for (std::size_t o = begin; o < end; o += kTileRows) {
      const OuterTile tile{dy + o, outputs, x + input, inputs, rows, out + o * inputs + input};
      with_rows(std::min(kTileRows, end - o), tile);
    }
  }
  if (input == inputs) return;
  const hn::CappedTag<float, 1> d;
  for (std::size_t o = begin; o < end; ++o) {
    for (std::size_t i = input; i < inputs; ++i) {
      auto sum = hn::Zero(d);
      for (std::size_t row = 0; row < rows; ++row) sum = hn::MulAdd(hn::Set(d, dy[row * outputs + o]), hn::Set(d, x[row * inputs + i]), sum);
      out[o * inputs + i] = hn::GetLane(sum);
    }
  }
}

}  // namespace troupe::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace troupe::models {

HWY_EXPORT(outer_rows);

namespace {
constexpr std::size_t kPartFmas = std::size_t{1} << 18;
}  // namespace

void outer_products(ThreadPool& pool, float* out, const float* dy, std::size_t outputs, const float* x, std::size_t inputs, std::size_t rows) {
  const std::size_t fmas = std::max<std::size_t>(1, inputs * rows);
  // Whole tiles of 12 or 6 outputs, whatever the target, so that threads do not cut them.
  constexpr std::size_t kTogether = 12;
  const std::size_t groups = (outputs + kTogether - 1) / kTogether;
  pool.parallel_ranges(groups, std::max<std::size_t>(1, kPartFmas / (fmas * kTogether)), [&](std::size_t begin, std::size_t end) {
    HWY_DYNAMIC_DISPATCH(outer_rows)(out, dy, outputs, x, inputs, rows, begin * kTogether, std::min(outputs, end * kTogether));
  });
}

}  // namespace troupe::models
#endif
