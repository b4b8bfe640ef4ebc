#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "actors/base/bytes.hpp"
#include "actors/base/error.hpp"

namespace troupe::transport {

/// MPI as this process sees it: entered once, left once, and the facts of MPI_COMM_WORLD between.
/// Any thread may call MPI while it holds guard(); errors are returned by MPI (MPI_ERRORS_RETURN), never fatal.
/// Nobody blocks inside MPI: use the non-blocking calls and poll them, letting go of the guard between two polls.
class MpiWorld {
 public:
  /// MPI_Init_thread, asking for MPI_THREAD_MULTIPLE. While a world is entered, further calls return the same one.
  /// Errors: unsupported when MPI grants less than MPI_THREAD_SERIALIZED, when it has been left already, or when its start changed how
  /// this thread rounds or treats denormals (MXCSR), which the numerics contract forbids; internal for MPI's own errors.
  static Result<std::shared_ptr<MpiWorld>> enter();

  /// Leaves in the orderly way when leave() was not called and no rank is known to be lost.
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// True when MPI_THREAD_MULTIPLE was granted: guard() then locks nothing.
  bool is_multithreaded() const { return multithreaded_; }

  /// To be held around every MPI call. Not recursive.
  [[nodiscard]] std::unique_lock<std::mutex> guard();

  /// Every rank's bytes, by rank. All ranks call it, from one thread each; gives up after `deadline_s` seconds.
  /// Errors: deadline_exceeded when a rank does not take part; peer_lost as soon as one is noted as lost; internal.
  Result<std::vector<Bytes>> all_gather(BytesView mine, int deadline_s);

  /// A rank is gone: MPI_Finalize would wait for it for ever, so it will not be called.
  void note_lost_rank();
  bool has_lost_rank() const { return lost_; }
  /// MPI_Finalize, once everyone alive is done with MPI. False when a rank was lost: MPI stays as it is, and the process must then end
  /// by _exit (or quick_exit), since MPI's own exit handlers may wait for the lost rank.
  bool leave();

 private:
  MpiWorld() = default;

  int rank_ = 0;
  int size_ = 1;
  bool multithreaded_ = false;
  std::mutex mutex_;        ///< what guard() locks
  std::mutex state_mutex_;  ///< left_
  std::atomic<bool> lost_ = false;
  bool left_ = false;
};

/// `code` as an Error that names the call, with MPI's own text; success is nothing. Call it while holding the guard.
Result<void> mpi_result(int code, std::string_view call);

}  // namespace troupe::transport
