#pragma once

#include <vector>

#include "actors/base/wire.hpp"
#include "transport/world.hpp"

namespace troupe::jobs::grpo {

/// Every rank's value, by rank. All ranks call it.
template <class T>
Result<std::vector<T>> gather(transport::World& world, const T& mine) {
  Bytes bytes;
  encode(bytes, mine);
  Result<std::vector<Bytes>> all = world.all_gather(bytes);
  if (!all) return all.error();
  std::vector<T> values(all->size());
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    if (Result<void> read = decode_into((*all)[rank], values[rank]); !read) return read.error();
  }
  return values;
}

}  // namespace troupe::jobs::grpo
