// The register tile of the linear kernels, for one instruction set. Included by sources that Highway compiles once a target, hence no
// ordinary include guard: the toggle lets each pass include it once.
#if defined(TROUPE_KERNELS_TILE_TOGGLE) == defined(HWY_TARGET_TOGGLE)
#ifdef TROUPE_KERNELS_TILE_TOGGLE
#undef TROUPE_KERNELS_TILE_TOGGLE
#else
#define TROUPE_KERNELS_TILE_TOGGLE
#endif

#include "models/kernels/vectors.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::models::HWY_NAMESPACE {

constexpr std::size_t kTileRows = kLanes >= 16 ? 12 : 6;   ///< as many accumulators as registers hold beside operands
constexpr std::size_t kTileVectors = 2;
constexpr std::size_t kTileWidth = kTileVectors * kLanes;

/// sums[r][v] = fma chain over k in [0, depth), from the sums given: a[r * a_row + k * a_step] · b[k * b_row + lanes of v].
template <std::size_t Rows>
HWY_INLINE void chain(Vector (&sums)[Rows][kTileVectors], const float* HWY_RESTRICT a, std::size_t a_row, std::size_t a_step, const float* HWY_RESTRICT b,
                      std::size_t b_row, std::size_t depth) {
  const Lanes d;
  for (std::size_t k = 0; k < depth; ++k) {
    const Vector b0 = hn::LoadU(d, b + k * b_row);
    const Vector b1 = hn::LoadU(d, b + k * b_row + kLanes);
#pragma GCC unroll 12
    for (std::size_t r = 0; r < Rows; ++r) {
      const Vector each = hn::Set(d, a[r * a_row + k * a_step]);
      sums[r][0] = hn::MulAdd(each, b0, sums[r][0]);
      sums[r][1] = hn::MulAdd(each, b1, sums[r][1]);
    }
  }
}

/// As chain, row r taking part for k in [begin[r], end[r]) only; elsewhere its sums keep their bits.
template <std::size_t Rows>
HWY_INLINE void ranged_chain(Vector (&sums)[Rows][kTileVectors], const float* HWY_RESTRICT a, std::size_t a_row, std::size_t a_step,
                             const float* HWY_RESTRICT b, std::size_t b_row, const std::size_t* begin, const std::size_t* end) {
  const Lanes d;
  const auto some_rows = [&](std::size_t first, std::size_t last) HWY_ATTR {
    for (std::size_t k = first; k < last; ++k) {
      const Vector b0 = hn::LoadU(d, b + k * b_row);
      const Vector b1 = hn::LoadU(d, b + k * b_row + kLanes);
#pragma GCC unroll 12
      for (std::size_t r = 0; r < Rows; ++r) {
        if (k < begin[r] || k >= end[r]) continue;
        const Vector each = hn::Set(d, a[r * a_row + k * a_step]);
        sums[r][0] = hn::MulAdd(each, b0, sums[r][0]);
        sums[r][1] = hn::MulAdd(each, b1, sums[r][1]);
      }
    }
  };
  const std::size_t first = *std::min_element(begin, begin + Rows), last = *std::max_element(end, end + Rows);
  const std::size_t all_first = *std::max_element(begin, begin + Rows), all_last = *std::min_element(end, end + Rows);
  if (all_first >= all_last) return some_rows(first, last);
  some_rows(first, all_first);
  chain(sums, a + all_first * a_step, a_row, a_step, b + all_first * b_row, b_row, all_last - all_first);
  some_rows(all_last, last);
}

template <std::size_t Rows>
HWY_INLINE void clear(Vector (&sums)[Rows][kTileVectors]) {
#pragma GCC unroll 12
  for (std::size_t r = 0; r < Rows; ++r) sums[r][0] = sums[r][1] = hn::Zero(Lanes());
}

template <std::size_t Rows>
HWY_INLINE void read(Vector (&sums)[Rows][kTileVectors], const float* from, std::size_t from_row) {
#pragma GCC unroll 12
  for (std::size_t r = 0; r < Rows; ++r) {
    sums[r][0] = hn::LoadU(Lanes(), from + r * from_row);
    sums[r][1] = hn::LoadU(Lanes(), from + r * from_row + kLanes);
  }
}

/// Writes the first `width` of kTileWidth columns of each row.
template <std::size_t Rows>
HWY_INLINE void store(const Vector (&sums)[Rows][kTileVectors], float* to, std::size_t to_row, std::size_t width) {
  const Lanes d;
  for (std::size_t r = 0; r < Rows; ++r) {
    if (width >= kTileWidth) {
      hn::StoreU(sums[r][0], d, to + r * to_row);
      hn::StoreU(sums[r][1], d, to + r * to_row + kLanes);
    } else {
      HWY_ALIGN float line[kTileWidth];
      hn::Store(sums[r][0], d, line);
      hn::Store(sums[r][1], d, line + kLanes);
      for (std::size_t i = 0; i < width; ++i) to[r * to_row + i] = line[i];
    }
  }
}

/// Calls tile.run<n>() for n = rows, at most kTileRows: a tile has its number of rows at compile time.
template <class Tile, std::size_t Rows = kTileRows>
HWY_INLINE void with_rows(std::size_t rows, const Tile& tile) {
  if constexpr (Rows > 0) {
    if (rows == Rows) return tile.template run<Rows>();
    with_rows<Tile, Rows - 1>(rows, tile);
  }
}

}  // namespace troupe::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
