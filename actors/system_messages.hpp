#pragma once

#include <string>

#include "actors/envelope.hpp"
#include "actors/supervision.hpp"

// What the runtime itself sends between cells and systems (EnvelopeKind::system). Not deliveries: they are not recorded.
namespace troupe {

struct StopActor {
  Error reason;  ///< ok: an orderly stop
  TROUPE_FIELDS(reason)
};
struct RestartActor {
  TROUPE_NO_FIELDS()
};
struct ChildFailed {
  ActorRef child;
  Error reason;
  TROUPE_FIELDS(child, reason)
};
struct MonitorActor {
  ActorRef watcher;
  std::uint64_t sequence = 0;  ///< of the watcher's: names the Down to come
  TROUPE_FIELDS(watcher, sequence)
};
/// When `other` fails, so does the receiver, and the other way round.
struct LinkActor {
  ActorRef other;
  TROUPE_FIELDS(other)
};
struct PeerLost {
  Rank rank{};
  Error reason;
  bool is_orderly = false;  ///< it said goodbye: its actors have stopped, none has failed
  TROUPE_FIELDS(rank, reason, is_orderly)
};
/// To a system (ActorId 0).
struct SpawnActor {
  TypeId actor_class{};
  std::string name;
  Bytes arguments;
  SpawnOptions options;
  ActorRef parent;
  TROUPE_FIELDS(actor_class, name, arguments, options, parent)
};
/// To a system: so many messages of its actors to `actor` have arrived, and there is room for more (Windows).
struct Acknowledged {
  ActorId actor{};
  std::uint32_t count = 0;
  TROUPE_FIELDS(actor, count)
};
/// To a system: somebody has waited for room in `actor`'s mailbox for a while; acknowledged with a count of 0 when `actor` waits for others itself.
struct StillPaused {
  ActorId actor{};
  TROUPE_FIELDS(actor)
};

/// To a system, asked from outside: SystemOptions::on_sync. The reply says that it is done.
struct SyncRank {
  std::uint64_t mark = 0;
  TROUPE_FIELDS(mark)
};
/// To a system: SystemOptions::on_shut_down.
struct ShutDown {
  Error reason;
  TROUPE_FIELDS(reason)
};

/// To a sender whose class handles it: what it told did not arrive.
struct Undeliverable {
  ActorRef to;
  std::string type;
  Error reason;
  TROUPE_FIELDS(to, type, reason)
};

}  // namespace troupe
