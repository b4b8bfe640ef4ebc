#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "actors/delivery.hpp"
#include "actors/record/history.hpp"

namespace troupe::record {

/// A segment's order of deliveries. Thread-safe; the segment outlives it.
class ReplayGate : public DeliveryGate {
 public:
  explicit ReplayGate(const Segment& segment);
  std::optional<Next> next(ActorId actor, std::uint64_t number) override;

 private:
  std::unordered_map<ActorId, const ActorHistory*> actors_;
};

struct ReplayCounts {
  std::uint64_t deliveries = 0, bytes = 0, clock_reads = 0, notes = 0, states = 0;
};

/// Compares a re-execution with a segment, on any number of ranks (each then has its own, of the actors it hosts). Clock reads get the
/// recorded times. After the first difference every call returns it: Error{divergence, "actor NAME, message N, TYPE, field F: recorded …,
/// got …"}. Calls about one actor come one at a time, those about several at once; the segment outlives it.
class ReplayChecker : public DeliveryObserver {
 public:
  explicit ReplayChecker(const Segment& segment);
  /// Before anything runs: the actor begins with delivery `number`.
  void begin_in_middle(ActorId actor, std::uint64_t number);

  void on_spawn(const Spawned& spawned) override;
  void on_stop(ActorId, std::uint64_t, const Error&) override {}
  void on_restart(ActorId, std::uint64_t, const Error&) override {}
  Result<void> on_delivery(const Delivery& delivery) override;
  Result<Time> on_clock_read(ActorId actor, std::uint64_t number, Time real) override;
  Result<void> on_note(ActorId actor, std::uint64_t number, std::string_view what, const ContentDigest& digest) override;
  Result<void> on_begin_step(ActorId actor, std::uint64_t number, std::uint64_t step) override;
  void on_handled(ActorId, std::uint64_t) override {}
  Result<void> on_state(ActorId actor, std::uint64_t number, const ContentDigest& digest, std::string_view type,
                        Value (*to_value)(const void*), const void* state) override;

  /// When the re-execution has stopped: the first difference so far; else, of a whole segment, the first actor spawned here that has not
  /// seen all of its recorded messages, clock reads, notes and states.
  Result<void> finish();
  /// Every delivery of every actor that was spawned here was seen; a job may stop then.
  /// (An actor may get messages before its spawning is told, hence the sign.)
  bool complete() const { return left_.load() == 0; }
  ReplayCounts counts() const;  ///< at any time
  std::optional<Error> divergence() const;

 private:
  /// How far one actor is; touched by the thread that runs it.
  struct Cursor {
    const ActorHistory* history;
    std::uint64_t delivered = 0;
    std::size_t clocks = 0, notes = 0, states = 0;
    bool spawned = false;
  };
  Result<Cursor*> cursor_of(ActorId actor, std::string_view name, std::uint64_t number);
  Result<void> check_left_behind(const Cursor& cursor, std::uint64_t before);
  /// A kill may have lost what this delivery's handler did after the mark of the checkpoint that ends the segment.
  bool may_be_lost(const Cursor& cursor, std::uint64_t number) const;
  std::string where(const Cursor& cursor, std::uint64_t number) const;
  Error diverge(std::string detail);
  std::optional<Error> stopped() const;

  const Segment& segment_;
  std::unordered_map<ActorId, Cursor> cursors_;  ///< the map itself never changes after construction
  std::atomic<std::int64_t> left_{0};
  std::atomic<bool> diverged_{false};
  std::atomic<std::uint64_t> deliveries_{0}, bytes_{0}, clock_reads_{0}, notes_{0}, states_{0};  ///< only shown, hence relaxed
  mutable std::mutex mutex_;
  std::optional<Error> first_;  ///< guarded by mutex_
};

}  // namespace troupe::record
