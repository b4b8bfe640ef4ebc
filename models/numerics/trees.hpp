#pragma once

#include <bit>
#include <cstddef>
#include <span>

#include "models/numerics/contract.hpp"

namespace troupe::models::numerics {

/// ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)), or the subtree of a power of two of neighbouring segments.
template <class T>
T segment_tree(std::span<const T> parts) {
  if (parts.size() == 1) return parts[0];
  const std::size_t half = parts.size() / 2;
  return segment_tree(parts.first(half)) + segment_tree(parts.subspan(half));
}

/// Halves added: i + (i + 8), then + 4, + 2, + 1. What a vector of 16 lanes does without shuffles inside it.
template <class T>
T partials_tree(std::span<const T, kPartials> parts) {
  T sums[kPartials / 2];
  for (std::size_t i = 0; i < 8; ++i) sums[i] = parts[i] + parts[i + 8];
  for (std::size_t half = 4; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half; ++i) sums[i] = sums[i] + sums[i + half];
  }
  return sums[0];
}

/// The largest power of two below n. Precondition: n > 1.
constexpr std::size_t split_point(std::size_t n) { return std::bit_floor(n - 1); }

/// The tree over n that splits at the largest power of two below n: for sequences, blocks, heads of a group. Precondition: not empty.
template <class T>
T pairwise_tree(std::span<const T> parts) {
  if (parts.size() == 1) return parts[0];
  const std::size_t split = split_point(parts.size());
  return pairwise_tree(parts.first(split)) + pairwise_tree(parts.subspan(split));
}

}  // namespace troupe::models::numerics
