#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "actors/base/ids.hpp"
#include "transport/collectives/packet.hpp"

namespace troupe::collectives {

/// Carries packets between the processes of a job: whole, in order between two ranks, at most once. Any thread may call it.
class Wire {
 public:
  virtual ~Wire() = default;

  virtual Rank rank() const = 0;
  /// Ranks on this host, this one included: waiting threads spin only where there is a core for each.
  virtual std::uint32_t ranks_on_host() const = 0;

  /// Takes the packet and returns at once. `unsent` was raised by the caller and is lowered when the packet has left.
  virtual void post(Rank to, Packet packet, std::shared_ptr<std::atomic<std::uint32_t>> unsent) = 0;

  /// Moves what is under way and hands over what has arrived. True when anything moved. Nothing moves between calls.
  virtual bool poll(const std::function<void(Rank from, Packet packet)>& arrived) = 0;
};

}  // namespace troupe::collectives
