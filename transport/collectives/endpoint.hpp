#pragma once

// The inside of a fabric: groups, their members' endpoints, and how a member waits.
//
// Invariants: 1. FabricState::mutex guards everything in this header. 2. The wire is called without it, except for posting, which
// never calls back. 3. A thread polls the wire only while it is the one that set `polling`. 4. A group's failure is set once.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "transport/collectives/fabric.hpp"

namespace troupe::collectives {

using Clock = std::chrono::steady_clock;

/// One member in this process.
struct Endpoint {
  std::uint32_t member = 0;
  std::condition_variable arrived;
  std::vector<std::deque<Packet>> inbox;    ///< by the sending member, in its order
  Fingerprint doing;                        ///< operation none between two collectives; sequence: the collectives entered so far
  std::vector<std::uint64_t> exchanges;     ///< by peer
  Clock::time_point entered;
  std::shared_ptr<std::atomic<std::uint32_t>> unsent = std::make_shared<std::atomic<std::uint32_t>>(0);
};

/// A group as this process knows it; without a spec while only packets of it have come.
struct Group {
  std::uint64_t id = 0;
  std::optional<GroupSpec> spec;
  std::map<std::uint32_t, std::shared_ptr<Endpoint>> endpoints;
  std::set<std::uint32_t> closed;
  std::vector<Packet> early;  ///< for members that are not open yet
  std::optional<Error> failure;
  bool inquired = false;
  std::map<std::uint32_t, Fingerprint> progress;  ///< what other ranks' members answered
  bool crosses_processes = false;
};

struct Fabric::State {
  std::mutex mutex;
  std::shared_ptr<Wire> wire;
  std::map<std::uint64_t, std::shared_ptr<Group>> groups;
  std::set<std::uint64_t> finished;  ///< groups whose members here are all closed: what still comes for them is dropped
  std::map<Rank, std::string> lost;
  std::optional<Error> aborted;      ///< by abort_all
  std::size_t open_endpoints = 0;
  std::size_t waiting = 0;
  bool polling = false;

  bool is_here(Rank rank) const { return wire == nullptr || wire->rank() == rank; }
  /// Waiting threads may spin only when each of them has a core.
  bool may_spin() const;

  std::shared_ptr<Group> group(std::uint64_t id);
  void deliver(Rank from, Packet packet);
  void learn(Group& group, const GroupSpec& spec) const;
  void fail(Group& group, Error error);
  void fail_family(Group& group);  ///< what was split from a group that has failed
  void close(Group& group, Endpoint& endpoint);

  /// Polls the wire when nobody else does. True when something moved. Gives the lock up meanwhile.
  bool poll(std::unique_lock<std::mutex>& lock);
  /// Sleeps until a packet comes for the endpoint, the wire should be polled again, or the time is reached.
  void pause(std::unique_lock<std::mutex>& lock, const Group& group, Endpoint& endpoint, Clock::time_point until);
  /// The deadline has passed: finds out who is missing or does something else, and fails the group.
  Error diagnose(std::unique_lock<std::mutex>& lock, Group& group, Endpoint& endpoint, const std::string& waiting_for);

 private:
  void deliver_data(Group& group, const PacketHeader& header, Packet packet);
  void answer_inquiry(const Group& group, Rank to);
};

/// "member 3 (rank 1)"
std::string describe_member(const Group& group, std::uint32_t member);
/// collective_mismatch that names both.
Error mismatch(const Group& group, std::uint32_t member, const Fingerprint& doing, std::uint32_t other, const Fingerprint& other_doing);
/// Whether what `other` says contradicts what `mine` does, in the same collective.
bool contradicts(const Fingerprint& mine, const Fingerprint& other);

/// The point-to-point layer under a member's collectives. One thread at a time; closes the member at its end.
class Port {
 public:
  Port(Fabric::State& fabric, std::shared_ptr<Group> group, std::shared_ptr<Endpoint> endpoint);
  ~Port();
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  std::uint32_t member() const { return endpoint_->member; }
  const GroupSpec& spec() const { return *group_->spec; }
  Fabric::State& fabric() const { return fabric_; }

  Result<void> enter(Operation operation, Element element, std::uint64_t bytes, std::uint32_t root = 0);
  Result<void> enter_exchange(std::uint32_t peer);
  /// A packet for `to` in the collective that was entered; its payload is to be filled, then posted.
  Packet packet_to(std::uint32_t to, std::size_t payload_bytes) const;
  void post(Packet packet);
  /// The next packet of `from`. Errors: collective_mismatch when it is of another collective.
  Result<Packet> take(std::uint32_t from);
  /// The same, of a known size.
  Result<Packet> take(std::uint32_t from, std::size_t payload_bytes);
  /// Waits until what was posted has left, and leaves the collective.
  Result<void> leave();

 private:
  template <class Ready>
  Result<void> wait(std::unique_lock<std::mutex>& lock, const std::string& waiting_for, Ready ready);

  Fabric::State& fabric_;
  std::shared_ptr<Group> group_;
  std::shared_ptr<Endpoint> endpoint_;
};

}  // namespace troupe::collectives
