#pragma once

#include <chrono>
#include <cstdint>

#include "actors/base/fields.hpp"

namespace troupe {

/// What an actor does about children that fail (throw, or are linked to one that failed). Restarted children keep name and mailbox, lose
/// their state and suspended handlers. Past the limit the supervisor fails itself: escalation.
struct Supervision {
  enum class Strategy : std::uint8_t { stop = 0, one_for_one = 1, one_for_all = 2 };
  Strategy strategy = Strategy::stop;
  std::uint32_t restarts_max = 3;                   ///< within `within`
  std::chrono::nanoseconds within{60'000'000'000};
  std::chrono::nanoseconds backoff{100'000'000};    ///< before the first restart; doubles with each one inside `within`
  std::chrono::nanoseconds backoff_max{10'000'000'000};
  TROUPE_FIELDS(strategy, restarts_max, within, backoff, backoff_max)
};

struct SpawnOptions {
  std::uint32_t mailbox_capacity = 1024;  ///< user messages; senders pause above it until half has been taken
  bool own_thread = false;                ///< the actor blocks: kernels, collectives, files
  Supervision children;                   ///< how it supervises what it spawns
  bool gang_member = false;               ///< of the gang whose name is the actor's up to its last '/'; for the record
  TROUPE_FIELDS(mailbox_capacity, own_thread, children, gang_member)
};

}  // namespace troupe
