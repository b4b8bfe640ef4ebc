#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/kernels/attention.hpp"

namespace troupe::models {

/// Keys (after rope) and values of `slots` sequences of up to `length_max` positions, in attention's blocks: a shard's kv heads of
/// every layer. Memory is taken once, at construction: slots · length_max (rounded up to blocks). One thread at a time.
class KvCache {
 public:
  KvCache(const AttentionShape& shape, std::uint32_t layers, std::uint32_t slots, std::uint32_t length_max);

  std::uint32_t slots() const { return slots_; }
  std::uint32_t length_max() const { return length_max_; }
  std::size_t bytes() const { return (keys_.size() + values_.size()) * sizeof(float); }

  float* keys(std::size_t layer, std::size_t slot) { return keys_.data() + offset(layer, slot); }
  float* values(std::size_t layer, std::size_t slot) { return values_.data() + offset(layer, slot); }

  /// Copies the first `positions` of a slot into another: what the samples of a prompt share.
  void copy(std::uint32_t from, std::uint32_t to, std::uint32_t positions);

 private:
  std::size_t offset(std::size_t layer, std::size_t slot) const { return (layer * slots_ + slot) * slot_floats_; }

  AttentionShape shape_;
  std::uint32_t layers_, slots_, length_max_;
  std::size_t slot_floats_;
  std::vector<float> keys_, values_;
};

}  // namespace troupe::models
