#include "models/kernels/thread_pool.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "actors/base/check.hpp"
#include "models/numerics/processor.hpp"

namespace troupe::models {

/// Invariants, under `mutex`: (1) the operation's fields change only while `working` is 0; (2) every part is taken once, by whoever
/// raises `next`; (3) an operation ends when all parts are taken and no worker still runs one.
struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable work, done;
  std::uint64_t generation = 0;
  bool stop = false;
  std::size_t parts = 0, next = 0, working = 0;
  Call call = nullptr;
  void* object = nullptr;
  std::vector<std::thread> workers;

  /// Takes parts until none is left. Holds the lock on entry and exit.
  void drain(std::unique_lock<std::mutex>& lock) {
    while (next < parts) {
      const std::size_t part = next++;
      ++working;
      lock.unlock();
      call(object, part);
      lock.lock();
      --working;
    }
  }

  void work_loop() {
    const auto environment = numerics::check_float_environment();
    TROUPE_CHECK(environment.has_value(), "a compute thread rounds to nearest and keeps denormals");
    std::unique_lock lock(mutex);
    std::uint64_t seen = 0;
    while (true) {
      work.wait(lock, [&] { return stop || generation != seen; });
      if (stop) return;
      seen = generation;
      drain(lock);
      if (working == 0) done.notify_one();
    }
  }
};

ThreadPool::ThreadPool(std::size_t threads) : threads_(std::max<std::size_t>(threads, 1)), state_(std::make_unique<State>()) {
  for (std::size_t i = 1; i < threads_; ++i) state_->workers.emplace_back([this] { state_->work_loop(); });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->work.notify_all();
  for (std::thread& worker : state_->workers) worker.join();
}

void ThreadPool::run(std::size_t parts, Call call, void* object) {
  if (threads_ == 1 || parts <= 1) {
    for (std::size_t part = 0; part < parts; ++part) call(object, part);
    return;
  }
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  TROUPE_CHECK(state.working == 0 && state.next == state.parts, "a pool runs one operation at a time");
  state.parts = parts;
  state.next = 0;
  state.call = call;
  state.object = object;
  ++state.generation;
  state.work.notify_all();
  state.drain(lock);
  state.done.wait(lock, [&] { return state.working == 0; });
}

std::size_t ThreadPool::parts_for(std::size_t items, std::size_t grain) const {
  // A few parts a thread even out unequal ones.
  const std::size_t most = threads_ == 1 ? 1 : threads_ * 4;
  return std::clamp<std::size_t>(items / std::max<std::size_t>(grain, 1), 1, most);
}

}  // namespace troupe::models
