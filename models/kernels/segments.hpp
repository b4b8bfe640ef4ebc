#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "models/numerics/contract.hpp"

namespace troupe::models {

/// The eight cuts of one dimension, or the part of them that a tensor-parallel shard holds (8, 4, 2 or 1 neighbouring segments, one subtree).
/// Segment s covers the local indices [offset[s], offset[s + 1]); segments that are not held are empty and take no part in sums.
struct SegmentCuts {
  std::size_t first = 0;                                    ///< segments held: [first, last)
  std::size_t last = numerics::kSegments;
  std::array<std::size_t, numerics::kSegments + 1> offset{};

  /// The whole dimension: offset[s] = floor(s · size / 8).
  static SegmentCuts of(std::size_t size) { return shard(size, 0, 1); }

  /// What shard `index` of `degree` (1, 2, 4, 8) holds of a dimension of `size`, with local offsets from 0.
  static SegmentCuts shard(std::size_t size, std::size_t index, std::size_t degree) {
    SegmentCuts cuts;
    const std::size_t held = numerics::kSegments / degree;
    cuts.first = index * held;
    cuts.last = cuts.first + held;
    const std::size_t begin = cuts.first * size / numerics::kSegments;
    const std::size_t end = cuts.last * size / numerics::kSegments;
    for (std::size_t s = 0; s <= numerics::kSegments; ++s) {
      const std::size_t cut = s * size / numerics::kSegments;
      cuts.offset[s] = (cut < begin ? begin : (cut > end ? end : cut)) - begin;
    }
    return cuts;
  }

  /// Several dimensions as one contraction: per segment, the parts in order (q_s, k_s, v_s). All must hold the same segments.
  static SegmentCuts concatenated(std::span<const SegmentCuts> parts) {
    SegmentCuts cuts = parts[0];
    for (const SegmentCuts& part : parts.subspan(1)) {
      for (std::size_t s = 0; s <= numerics::kSegments; ++s) cuts.offset[s] += part.offset[s];
    }
    return cuts;
  }

  std::size_t total() const { return offset[numerics::kSegments]; }
  std::size_t size(std::size_t s) const { return offset[s + 1] - offset[s]; }
  std::size_t held() const { return last - first; }
  bool operator==(const SegmentCuts&) const = default;
};

}  // namespace troupe::models
