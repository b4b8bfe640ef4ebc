#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "actors/executor.hpp"

namespace troupe {

/// Runs actors only when told to, on the caller's thread, so that between two calls nothing runs and no thread exists: a process may then be
/// forked, and its actors looked into. Actors that block together (a gang's members, in a collective) get threads for as long as they run.
/// Time stands still; what was put off by `after` waits in order for `run_next_timer`.
class Stepper final : public Executor {
 public:
  Stepper();
  ~Stepper() override;
  void post(Runnable& runnable) override;
  std::unique_ptr<Lane> make_lane() override;
  Time now() override { return now_; }
  void after(Time delay, std::function<void()> call) override;
  void stop() override { stopped_ = true; }

  /// Until nobody has anything to do.
  void run();
  /// Moves time to the next timer and calls it. False when there is none.
  bool run_next_timer();

 private:
  class StepperLane;
  std::vector<Runnable*> take(std::vector<Runnable*>& from);

  std::mutex mutex_;
  std::vector<Runnable*> ready_, blocking_;                          ///< guarded by mutex_
  std::map<std::pair<Time, std::uint64_t>, std::function<void()>> timers_;  ///< guarded by mutex_
  std::uint64_t timers_made_ = 0;
  Time now_{0};
  bool stopped_ = false;
};

}  // namespace troupe
