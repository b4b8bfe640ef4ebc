#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "actors/base/wire.hpp"
#include "transport/world.hpp"

namespace troupe::jobs::grpo {

/// For what comes after the loading of a model, which takes one rank much longer than another. A rank that dies is noticed at once.
constexpr int kLoadDeadline_s = 7200;

/// Every rank's value, by rank. All ranks call it.
template <class T>
Result<std::vector<T>> gather(transport::World& world, const T& mine, int deadline_s = 0) {
  Bytes bytes;
  encode(bytes, mine);
  Result<std::vector<Bytes>> all = world.all_gather(bytes, deadline_s);
  if (!all) return all.error();
  std::vector<T> values(all->size());
  for (std::size_t rank = 0; rank < values.size(); ++rank) {
    if (Result<void> read = decode_into((*all)[rank], values[rank]); !read) return read.error();
  }
  return values;
}

/// How it went on every rank: the first rank's error that has one, on all. All ranks call it.
template <class T>
Result<void> agree(transport::World& world, const Result<T>& mine, int deadline_s = 0) {
  Result<std::vector<Error>> all = gather(world, mine ? Error{ErrorCode::ok, {}} : mine.error(), deadline_s);
  if (!all) return all.error();
  const auto failed = [](const Error& error) { return error.code != ErrorCode::ok; };
  const auto first = std::find_if(all->begin(), all->end(), failed);
  if (first == all->end()) return {};
  if (std::all_of(all->begin(), all->end(), failed)) return *first;  // it is no matter of a rank
  return Error{first->code, "rank " + std::to_string(first - all->begin()) + ": " + first->detail};
}

}  // namespace troupe::jobs::grpo
