#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/config.hpp"
#include "models/parameters.hpp"

namespace troupe::models {

/// Keys (after rope) and values of `slots` sequences of up to `length_max` positions: a shard's kv heads of every layer.
/// Memory is taken once, at construction. One thread at a time.
class KvCache {
 public:
  KvCache(const ModelConfig& config, Shard shard, std::uint32_t slots, std::uint32_t length_max);

  std::uint32_t slots() const { return slots_; }
  std::uint32_t length_max() const { return length_max_; }
  std::uint64_t bytes() const { return (keys_.size() + values_.size()) * sizeof(float); }

  /// [length_max, kv_width] row-major, of one slot in one layer.
  std::span<float> keys(std::uint32_t layer, std::uint32_t slot) { return part(keys_, layer, slot); }
  std::span<float> values(std::uint32_t layer, std::uint32_t slot) { return part(values_, layer, slot); }

  /// Copies the first `positions` of a slot into another: what n samples of a prompt share.
  void copy(std::uint32_t from, std::uint32_t to, std::uint32_t positions);

  static std::uint64_t bytes_of(const ModelConfig& config, Shard shard, std::uint32_t slots, std::uint32_t length_max);

 private:
  std::span<float> part(std::vector<float>& all, std::uint32_t layer, std::uint32_t slot);

  std::uint32_t layers_, slots_, length_max_;
  std::uint64_t width_;
  std::vector<float> keys_, values_;
};

}  // namespace troupe::models
