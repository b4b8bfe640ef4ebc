#include "models/kernels/packed_matrix.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

#include "actors/base/check.hpp"

namespace troupe::models {

namespace {

constexpr std::size_t kPanel = PackedMatrix::kPanel;

/// Zeros, in huge pages where the system lends them: weights are read in long streams, and small pages would end them early.
void resize_in_huge_pages(std::vector<float>& data, std::size_t size) {
  constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;
  if (size > data.capacity()) {
    data = {};
    data.reserve(size);
    const auto begin = (reinterpret_cast<std::uintptr_t>(data.data()) + kHugePage - 1) / kHugePage * kHugePage;
    const auto end = reinterpret_cast<std::uintptr_t>(data.data() + size) / kHugePage * kHugePage;
    // A wish only: without huge pages all works the same.
    if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
  data.resize(size);
}

/// Destination rows of each part's segments: part p's segment s begins at begins[p][s].
template <class Parts, class Body>
void for_each_piece(const Parts& parts, Body body) {
  std::size_t at = 0;
  for (std::size_t s = 0; s < numerics::kSegments; ++s) {
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const std::size_t size = parts[p].cuts.size(s);
      if (size > 0) body(p, parts[p].cuts.offset[s], size, at);
      at += size;
    }
  }
}

template <class Parts>
SegmentCuts joined(const Parts& parts) {
  SegmentCuts cuts = parts[0].cuts;
  for (const auto& part : parts.subspan(1)) {
    TROUPE_CHECK(part.cuts.first == cuts.first && part.cuts.last == cuts.last, "parts of one contraction hold the same segments");
    const SegmentCuts both[] = {cuts, part.cuts};
    cuts = SegmentCuts::concatenated(both);
  }
  return cuts;
}

}  // namespace

void PackedMatrix::pack(ThreadPool& pool, std::span<const float> weights, std::size_t outputs, const SegmentCuts& cuts) {
  TROUPE_CHECK(weights.size() == outputs * cuts.total(), "weights are [outputs, depth]");
  outputs_ = outputs;
  cuts_ = cuts;
  const std::size_t depth = cuts.total();
  resize_in_huge_pages(data_, panels() * kPanel * depth);
  pool.parallel_ranges(panels(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t p = begin; p < end; ++p) {
      float* to = data_.data() + p * kPanel * depth;
      const std::size_t width = std::min(kPanel, outputs - p * kPanel);
      const float* from = weights.data() + p * kPanel * depth;
      // Eight columns at a time: whole cache lines of the rows, and writes that stay in one line of the panel.
      for (std::size_t k0 = 0; k0 < depth; k0 += 8) {
        const std::size_t k1 = std::min(depth, k0 + 8);
        for (std::size_t j = 0; j < width; ++j) {
          for (std::size_t k = k0; k < k1; ++k) to[k * kPanel + j] = from[j * depth + k];
        }
        for (std::size_t k = k0; k < k1; ++k) std::fill(to + k * kPanel + width, to + (k + 1) * kPanel, 0.0F);
      }
    }
  });
}

void PackedMatrix::pack_transposed(ThreadPool& pool, std::span<const TransposedPart> parts, std::size_t inputs) {
  outputs_ = inputs;
  cuts_ = joined(parts);
  for (const TransposedPart& part : parts) TROUPE_CHECK(part.weights.size() == part.cuts.total() * inputs, "weights are [outputs, inputs]");
  const std::size_t depth = cuts_.total();
  resize_in_huge_pages(data_, panels() * kPanel * depth);
  pool.parallel_ranges(panels(), 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t p = begin; p < end; ++p) {
      const std::size_t width = std::min(kPanel, inputs - p * kPanel);
      for_each_piece(parts, [&](std::size_t part, std::size_t first, std::size_t size, std::size_t at) {
        for (std::size_t k = 0; k < size; ++k) {
          const float* from = parts[part].weights.data() + (first + k) * inputs + p * kPanel;
          float* to = data_.data() + (p * depth + at + k) * kPanel;
          std::copy_n(from, width, to);
          std::fill(to + width, to + kPanel, 0.0F);
        }
      });
    }
  });
}

void gather_segments(ThreadPool& pool, std::span<float> x, std::span<const SegmentSource> sources, std::size_t rows) {
  const std::size_t depth = joined(sources).total();
  TROUPE_CHECK(x.size() == rows * depth, "x is [rows, the sources' totals]");
  pool.parallel_ranges(rows, 16, [&](std::size_t begin, std::size_t end) {
    for_each_piece(sources, [&](std::size_t part, std::size_t first, std::size_t size, std::size_t at) {
      const SegmentSource& source = sources[part];
      for (std::size_t row = begin; row < end; ++row) std::copy_n(&source.data[row * source.cuts.total() + first], size, &x[row * depth + at]);
    });
  });
}

}  // namespace troupe::models
