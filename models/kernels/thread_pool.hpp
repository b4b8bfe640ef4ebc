#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>

namespace troupe::models {

/// Threads that share the parts of one operation's outputs; no sum ever crosses a part, so their number changes no bit.
/// They sleep between operations and never spin. One caller at a time, which works along: a pool of 1 starts no thread.
/// Threads check their floating-point environment on entry (TROUPE_CHECK).
class ThreadPool {
 public:
  explicit ThreadPool(std::size_t threads = 1);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  std::size_t threads() const { return threads_; }

  /// Calls body(part) once for every part in [0, parts), in no fixed order and on any thread; returns when all are done.
  /// The body must not throw and must not call the pool.
  template <class Body>
  void parallel(std::size_t parts, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run(parts, [](void* object, std::size_t part) { (*static_cast<Plain*>(object))(part); }, const_cast<void*>(static_cast<const void*>(&body)));
  }

  /// parallel over [0, items) in runs of at least `grain` items: body(begin, end).
  template <class Body>
  void parallel_ranges(std::size_t items, std::size_t grain, Body&& body) {
    const std::size_t parts = parts_for(items, grain);
    parallel(parts, [&](std::size_t part) { body(items * part / parts, items * (part + 1) / parts); });
  }

 private:
  struct State;
  using Call = void (*)(void* object, std::size_t part);
  void run(std::size_t parts, Call call, void* object);
  std::size_t parts_for(std::size_t items, std::size_t grain) const;

  std::size_t threads_;
  std::unique_ptr<State> state_;
};

}  // namespace troupe::models
