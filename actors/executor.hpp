#pragma once

#include <functional>
#include <memory>

#include "actors/delivery.hpp"

namespace troupe {

/// Something to run soon on a thread of an executor's; an actor's cell. Posted at most once before it runs.
class Runnable {
 public:
  virtual void run() = 0;

 protected:
  ~Runnable() = default;
};

/// Threads of one actor's own, for one that blocks (in a collective, in a kernel).
class Lane {
 public:
  virtual ~Lane() = default;
  virtual void post(Runnable& runnable) = 0;
};

/// The seam to threads, timers and the clock: a pool of threads, or a simulation that steps. Thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void post(Runnable& runnable) = 0;
  virtual std::unique_ptr<Lane> make_lane() = 0;
  virtual Time now() = 0;
  /// Calls once `delay` has passed, on some thread; not at all after stop().
  virtual void after(Time delay, std::function<void()> call) = 0;
  /// Runs nothing more; returns when what runs has returned.
  virtual void stop() = 0;
};

/// A pool of threads on Asio. `threads`: at least 1.
std::unique_ptr<Executor> make_pool_executor(unsigned threads);

}  // namespace troupe
