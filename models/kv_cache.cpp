#include "models/kv_cache.hpp"

#include <algorithm>

namespace troupe::models {

KvCache::KvCache(const AttentionShape& shape, std::uint32_t layers, std::uint32_t slots, std::uint32_t length_max)
    : shape_(shape), layers_(layers), slots_(slots), length_max_(length_max), slot_floats_(key_value_floats(shape, length_max)) {
  keys_.resize(std::size_t{layers} * slots * slot_floats_);
  values_.resize(keys_.size());
}

void KvCache::copy(std::uint32_t from, std::uint32_t to, std::uint32_t positions) {
  // Whole blocks: what lies beyond `positions` in the last one is never read before it is overwritten.
  const std::size_t floats = key_value_floats(shape_, positions);
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    std::copy_n(keys(layer, from), floats, keys(layer, to));
    std::copy_n(values(layer, from), floats, values(layer, to));
  }
}

}  // namespace troupe::models
