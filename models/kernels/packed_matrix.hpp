#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "models/kernels/segments.hpp"
#include "models/kernels/thread_pool.hpp"

namespace troupe::models {

/// One weight of a contraction over outputs: [cuts.total(), inputs] row-major, as Hugging Face stores it.
struct TransposedPart {
  std::span<const float> weights;
  SegmentCuts cuts;  ///< of its outputs
};

/// The matrix B [depth, outputs] of y = x · B, in panels of 32 outputs ([panel][k][32], zero beyond the last output), with the cuts of
/// its depth. The layout does not depend on the instruction set. Movable; packing again reuses the memory.
class PackedMatrix {
 public:
  static constexpr std::size_t kPanel = 32;

  /// Packs weights [outputs, cuts.total()] row-major for y = x · Wᵀ.
  void pack(ThreadPool& pool, std::span<const float> weights, std::size_t outputs, const SegmentCuts& cuts);

  /// Packs for the gradient of the input: B [Σ outputs, inputs], the contraction running over the outputs of all parts, per segment in
  /// their order. Its x is what gather_segments makes of the parts' dY. Precondition: all parts have `inputs` columns and hold the same segments.
  void pack_transposed(ThreadPool& pool, std::span<const TransposedPart> parts, std::size_t inputs);

  std::size_t depth() const { return cuts_.total(); }
  std::size_t outputs() const { return outputs_; }
  const SegmentCuts& cuts() const { return cuts_; }
  std::size_t panels() const { return (outputs_ + kPanel - 1) / kPanel; }
  const float* panel(std::size_t index) const { return data_.data() + index * kPanel * depth(); }
  std::size_t bytes() const { return data_.size() * sizeof(float); }

 private:
  std::size_t outputs_ = 0;
  SegmentCuts cuts_;
  std::vector<float> data_;
};

/// One dY of several that share an input: [rows, cuts.total()] row-major.
struct SegmentSource {
  std::span<const float> data;
  SegmentCuts cuts;
};

/// x [rows, Σ totals]: per row and segment the sources' parts in order, as pack_transposed wants them.
void gather_segments(ThreadPool& pool, std::span<float> x, std::span<const SegmentSource> sources, std::size_t rows);

}  // namespace troupe::models
