#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace troupe::jobs {

/// SIGINT, SIGTERM and SIGUSR1 (Slurm's warning, which counts as SIGTERM) as requests to end after a checkpoint. Make it before any other
/// thread: it blocks the signals in this thread and in all that start later, and takes them in one of its own. A second SIGINT ends
/// the process at once (130).
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  /// The first that arrived: SIGINT or SIGTERM.
  std::optional<int> received() const;
  /// 130 or 143 once one arrived.
  std::optional<int> exit_code() const;
  /// Called once, on the thread of the signals, when the first arrives; at once when it has already. One callback; an empty one takes it
  /// away, and no call is under way when this returns (so do not call it within the callback).
  void on_stop(std::function<void(int signal)> callback);

 private:
  void watch();

  std::atomic<int> received_{0};
  int ended_;  ///< an eventfd
  std::mutex mutex_;
  std::function<void(int)> callback_;
  std::thread thread_;
};

}  // namespace troupe::jobs
