#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/envelope.hpp"

namespace troupe {

/// Bounds what is under way between ranks: of the messages that a rank's actors sent to one mailbox elsewhere, at most kWindow (and the rest of
/// the handler that passed it) are unacknowledged. The mailbox's rank acknowledges what has arrived, half a window at a time, and holds that
/// back while the mailbox is full. So an acknowledgement waits for nothing but room, and a mailbox holds at most its capacity and, of each
/// sending rank, a window and a handler's sends. Thread-safe.
class Windows {
 public:
  static constexpr std::uint32_t kWindow = 64;

  // Where the sender is.
  /// Counts a message; true when the window is used up.
  bool sent(ActorId receiver);
  void not_sent(ActorId receiver) { acknowledged(receiver, 1); }
  bool is_used_up(ActorId receiver) const;
  void acknowledged(ActorId receiver, std::uint32_t count);

  // Where the receiver is.
  /// Counts a message that came; true when an acknowledgement is due.
  bool arrived(ActorId receiver, Rank from);
  std::uint32_t take_owed(ActorId receiver, Rank to);
  std::vector<std::pair<Rank, std::uint32_t>> take_owed(ActorId receiver);

 private:
  mutable std::mutex mutex_;
  std::unordered_map<ActorId, std::uint32_t> unacknowledged_;                       ///< by receiver
  std::unordered_map<ActorId, std::unordered_map<Rank, std::uint32_t>> owed_;       ///< by receiver and sending rank
};

}  // namespace troupe
