#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "actors/base/fields.hpp"
#include "actors/base/value.hpp"
#include "jobs/debug/debugger.hpp"

// What the debugger says to the processes that re-execute (worker.hpp), and what they answer.
namespace troupe {

template <class Archive>
void serialize(Archive& archive, Value& value, unsigned) {
  archive & value.kind & value.type & value.data & value.shape & value.text & value.names & value.children;
}

}  // namespace troupe

namespace troupe::jobs::debug {

/// A stop that the index cannot answer alone; ids of 0 match everything.
struct Check {
  std::uint32_t id = 0;
  std::uint64_t type = 0, actor = 0, sender = 0;
  std::string expression;  ///< a condition, or what is watched
  bool is_watch = false;
  std::uint64_t watched_actor = 0;  ///< of a watch; 0: the receiver of each delivery
  std::string log;
  TROUPE_FIELDS(id, type, actor, sender, expression, is_watch, watched_actor, log)
};

/// Copies the process; the answer carries a channel to the copy.
struct Fork {
  TROUPE_NO_FIELDS()
};
/// Goes forward to `limit`. Stops at the first hit of a check; or, all_hits, passes them and tells each. A hit before a delivery at the
/// position from which it starts does not count.
struct RunTo {
  std::uint64_t limit = 0;
  double snapshot_every_s = 0;  ///< 0: none
  bool all_hits = false;
  std::vector<Check> checks;
  TROUPE_FIELDS(limit, snapshot_every_s, all_hits, checks)
};
struct GetState {
  std::uint64_t actor = 0;
  TROUPE_FIELDS(actor)
};
struct GetMessage {
  TROUPE_NO_FIELDS()
};
struct GetReport {
  std::uint64_t actor = 0;
  TROUPE_FIELDS(actor)
};
struct GetEnvironment {
  TROUPE_NO_FIELDS()
};
struct Evaluate {
  std::string text;
  std::uint64_t actor = 0;
  TROUPE_FIELDS(text, actor)
};
/// Leaves the record: state.path = value, at an actor.
struct Assign {
  std::string text;
  std::uint64_t actor = 0;
  TROUPE_FIELDS(text, actor)
};
/// Delivers one message that no record orders.
struct BranchStep {
  TROUPE_NO_FIELDS()
};
using Command = std::variant<Fork, RunTo, GetState, GetMessage, GetReport, GetEnvironment, Evaluate, Assign, BranchStep>;

/// With a descriptor: a copy that stands at n.
struct Snapshot {
  std::uint64_t n = 0;
  TROUPE_FIELDS(n)
};
struct Hit {
  std::uint32_t id = 0;
  std::uint64_t n = 0;         ///< the position at which it shows
  std::uint64_t event = 0;     ///< the delivery that it belongs to
  std::string text;
  TROUPE_FIELDS(id, n, event, text)
};
/// RunTo's end.
struct Ran {
  std::uint64_t n = 0;
  StopReason reason = StopReason::moved;
  std::vector<Hit> hits;
  std::string text;
  TROUPE_FIELDS(n, reason, hits, text)
};
struct LogLine {
  std::string text;
  TROUPE_FIELDS(text)
};
using Answer = std::variant<Error, Snapshot, Ran, LogLine, Value, ActorReport>;

/// What all processes of a debugger see. In memory that they share.
struct Shared {
  std::atomic<std::uint64_t> position{0};
  std::atomic<bool> interrupted{false};
};

}  // namespace troupe::jobs::debug
