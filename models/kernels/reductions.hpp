#pragma once

#include <array>
#include <span>

#include "models/kernels/segments.hpp"
#include "models/numerics/trees.hpp"

namespace troupe::models {

/// 16 interleaved partials (index from the segment's start, mod 16), each from +0: next(i, partial) gives the partial with element i in it.
template <class T, class Next>
T interleaved_sum(std::size_t begin, std::size_t end, Next next) {
  std::array<T, numerics::kPartials> partials{};
  for (std::size_t i = begin; i < end; ++i) {
    T& partial = partials[(i - begin) % numerics::kPartials];
    partial = next(i, partial);
  }
  return numerics::partials_tree(std::span<const T, numerics::kPartials>(partials));
}

/// The sums of the segments held, in their tree.
template <class T, class Next>
T segmented_sum(const SegmentCuts& cuts, Next next) {
  std::array<T, numerics::kSegments> sums{};
  for (std::size_t s = cuts.first; s < cuts.last; ++s) sums[s] = interleaved_sum<T>(cuts.offset[s], cuts.offset[s + 1], next);
  return numerics::segment_tree(std::span<const T>(sums).subspan(cuts.first, cuts.held()));
}

}  // namespace troupe::models
