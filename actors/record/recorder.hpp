#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "actors/base/monotonic.hpp"
#include "actors/delivery.hpp"
#include "actors/record/journal.hpp"

namespace troupe::record {

enum class RecordLevel : std::uint8_t {
  order,  ///< who, from whom, which, what type, digests; payloads of what comes from outside
  full,   ///< every payload too, so that one actor replays alone
};

/// Records what an actor system delivers into a journal. Called from many threads; one short lock per call, digests outside it.
/// The journal outlives it. An error of the journal is the error of the next delivery, so that a run never goes on unrecorded.
class Recorder : public DeliveryObserver {
 public:
  using Clock = std::chrono::nanoseconds (*)();
  /// clock: of the times of deliveries; a test's own makes equal journals.
  explicit Recorder(Journal& journal, RecordLevel level = RecordLevel::order, Clock clock = &monotonic_now);

  void on_spawn(const Spawned& spawned) override;
  void on_stop(ActorId actor, std::uint64_t number, const Error& reason) override;
  void on_restart(ActorId actor, std::uint64_t number, const Error& reason) override;
  Result<void> on_delivery(const Delivery& delivery) override;
  Result<Time> on_clock_read(ActorId actor, std::uint64_t number, Time real) override;
  Result<void> on_note(ActorId actor, std::uint64_t number, std::string_view what, const ContentDigest& digest) override;
  Result<void> on_begin_step(ActorId actor, std::uint64_t number, std::uint64_t step) override;
  void on_handled(ActorId actor, std::uint64_t number) override;
  Result<void> on_state(ActorId actor, std::uint64_t number, const ContentDigest& digest, std::string_view type,
                        Value (*to_value)(const void*), const void* state) override;

  /// Every actor here has done `step` and none has begun the next. A segment of a resumed run ends at the mark of its last checkpoint,
  /// so a job marks the step on every rank, and has the journals written (Journal::sync), before it keeps the checkpoint.
  void mark_step(std::uint64_t step);

 private:
  std::uint32_t actor_index(FrameWriter& writer, ActorId actor);
  std::uint32_t name_index(FrameWriter& writer, TypeId type, std::string_view text);
  void record_payload(FrameWriter& writer, const Origin& origin, BytesView payload);
  void record_digest(EntryType entry, ActorId actor, std::uint64_t number, std::string_view name, const ContentDigest& digest);
  void record_stop(EntryType entry, ActorId actor, std::uint64_t number, const Error& reason);
  Result<void> outcome() const;

  Journal& journal_;
  const RecordLevel level_;
  const Clock clock_;
  const std::chrono::nanoseconds began_;
  // Guarded by the journal's lock: used only inside Journal::append.
  std::unordered_map<std::uint64_t, std::uint32_t> actors_, types_, names_;
  std::uint32_t name_count_ = 0;
  std::int64_t last_us_ = 0;  ///< the time of the last delivery
};

}  // namespace troupe::record
