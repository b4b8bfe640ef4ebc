#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "actors/base/error.hpp"
#include "actors/base/fields.hpp"
#include "actors/base/ids.hpp"
#include "transport/collectives/communicator.hpp"
#include "transport/collectives/wire.hpp"

namespace troupe::collectives {

/// Who is in a group and where. The same in every member; the id must differ between groups that live at the same time or one after the other.
struct GroupSpec {
  std::uint64_t id = 0;
  std::string name;         ///< for messages
  std::vector<Rank> ranks;  ///< by member
  std::chrono::milliseconds deadline{600'000};  ///< of one collective, counted from when a member enters it
  std::uint64_t family = 0;  ///< the id of the group that it was split from, directly or not; 0: of none

  TROUPE_FIELDS(id, name, ranks, deadline, family)
};

/// A process's end of all groups: members of this process meet in memory, others over the wire. Thread-safe.
///
/// A fabric without a wire takes every member for its own, whatever rank it names; so a job in one process, and a
/// simulation of several ranks in it, needs nothing else.
class Fabric {
 public:
  Fabric();
  explicit Fabric(std::shared_ptr<Wire> wire);
  ~Fabric();
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  /// The one that gangs use.
  static Fabric& process();

  /// Joins the processes; before the first group is opened. nullptr detaches, when no group is open any more (and before MPI is left).
  void attach(std::shared_ptr<Wire> wire);

  /// This process's end of one member; it must not outlive the fabric. Packets that came before are waiting in it.
  /// Errors: bad_input when the member is not in the group, lives in another process or has been opened before.
  Result<std::unique_ptr<Communicator>> open(const GroupSpec& spec, std::uint32_t member);

  /// Fails a group: members that wait, here and in the other processes, return `error`, and so does every later call.
  void abort(std::uint64_t group, Error error);
  /// The same of a group that may not be open here yet, and of all that are split from it: a member cannot go on, so nobody is to wait for it.
  void abort(const GroupSpec& spec, const Error& error);
  /// Fails every group that is open here, and every one that is opened until reopen(): what would wait for the others is over.
  void abort_all(const Error& error);
  void reopen();
  /// Members of this process that wait for another one at this moment.
  std::size_t waiting() const;
  /// A rank is gone: fails every group that has members there with peer_lost.
  void lose(Rank rank, const std::string& reason);

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace troupe::collectives
