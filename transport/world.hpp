#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/address.hpp"
#include "transport/asio_link.hpp"
#include "transport/mpi/mpi_world.hpp"

namespace troupe::transport {

struct WorldOptions {
  ListenOptions listen;
  AsioLinkOptions link;        ///< its on_lost hears of lost ranks after the collectives do
  int deadline_s = 60;         ///< for every rank to take part in the start and in all_gather
  int leave_deadline_s = 600;  ///< for every rank to leave: one may still have files to write
};

/// The job's ranks as this one sees them: who they are, the link to them, and the collectives' wire (in Fabric::process()).
/// Started by a launcher, it is MPI's world; else one rank alone, without a link and without MPI.
///
/// A rank that is lost fails the collective groups it is in at once; leave() then does without MPI_Finalize.
class World {
 public:
  /// Every rank calls it once, from one thread. Errors: those of MPI and of the operating system; deadline_exceeded or peer_lost when a
  /// rank does not take part or cannot be reached from here, with what was tried.
  static Result<std::unique_ptr<World>> join(WorldOptions options = {});

  /// This process alone, whatever launched it: a debugger within a batch job, say.
  static Result<std::unique_ptr<World>> alone();

  /// Leaves if leave() was not called.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Rank rank() const { return rank_; }
  std::uint32_t size() const { return size_; }
  /// Host names, by rank.
  const std::vector<std::string>& hosts() const { return hosts_; }
  /// Null when this rank is alone. Lives as long as the world; whoever started it may stop it before leave().
  Link* link() const { return link_.get(); }

  /// Every rank's bytes, by rank: to be called by all ranks, in the same order, before the work begins.
  /// deadline_s: for every rank to take part; 0: the options'.
  Result<std::vector<Bytes>> all_gather(BytesView mine, int deadline_s = 0);

  bool has_lost_rank() const { return mpi_ != nullptr && mpi_->has_lost_rank(); }

  /// Waits for the other ranks to leave as well, closes the link and ends MPI. No collective group may be open.
  /// False when a rank is lost or does not leave: the process must then end by std::quick_exit or _exit once its files are closed, since
  /// MPI's own exit handlers may wait for the lost rank for ever.
  [[nodiscard]] bool leave();

 private:
  World() = default;
  Result<void> join_mpi(WorldOptions options);

  Rank rank_{0};
  std::uint32_t size_ = 1;
  int deadline_s_ = 60;
  int leave_deadline_s_ = 600;
  std::vector<std::string> hosts_;
  std::shared_ptr<MpiWorld> mpi_;
  std::unique_ptr<AsioLink> link_;
  bool left_ = false;
  bool left_well_ = true;
};

}  // namespace troupe::transport
