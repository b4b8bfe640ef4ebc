#include "actors/windows.hpp"

#include <algorithm>

namespace troupe {

bool Windows::sent(ActorId receiver) {
  const std::lock_guard lock(mutex_);
  return ++unacknowledged_[receiver] >= kWindow;
}

bool Windows::is_used_up(ActorId receiver) const {
  const std::lock_guard lock(mutex_);
  const auto at = unacknowledged_.find(receiver);
  return at != unacknowledged_.end() && at->second >= kWindow;
}

void Windows::acknowledged(ActorId receiver, std::uint32_t count) {
  const std::lock_guard lock(mutex_);
  const auto at = unacknowledged_.find(receiver);
  if (at == unacknowledged_.end()) return;
  at->second -= std::min(at->second, count);
  if (at->second == 0) unacknowledged_.erase(at);
}

bool Windows::arrived(ActorId receiver, Rank from) {
  const std::lock_guard lock(mutex_);
  return ++owed_[receiver][from] >= kWindow / 2;
}

std::uint32_t Windows::take_owed(ActorId receiver, Rank to) {
  const std::lock_guard lock(mutex_);
  return std::exchange(owed_[receiver][to], 0);
}

std::vector<std::pair<Rank, std::uint32_t>> Windows::take_owed(ActorId receiver) {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<Rank, std::uint32_t>> owed;
  const auto at = owed_.find(receiver);
  if (at == owed_.end()) return owed;
  for (const auto& [rank, count] : at->second) {
    if (count > 0) owed.emplace_back(rank, count);
  }
  owed_.erase(at);
  return owed;
}

}  // namespace troupe
