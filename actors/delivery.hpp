#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "actors/envelope.hpp"

namespace troupe {

/// Time since the run's start; never part of a message unless an actor puts it there (and then it is recorded).
using Time = std::chrono::nanoseconds;

/// What is not deterministic reaches an actor as one of these. Seen on the thread that runs the actor, in its order.
struct Delivery {
  ActorId actor{};
  std::uint64_t number = 0;       ///< of the actor's deliveries, from 0
  const Envelope* envelope = nullptr;
  std::string_view actor_name;
  std::uint64_t sends = 0;        ///< messages that the actor sent since its delivery before: by that one's handler
};

/// An actor that begins to live.
struct Spawned {
  ActorId actor{};
  std::string_view name, class_name;
  std::string_view gang;          ///< whose member it is; empty: none's
  Rank rank{};
};

/// Records (or checks) a run. Calls about one actor come one at a time, in its order; actors call concurrently.
class DeliveryObserver {
 public:
  virtual ~DeliveryObserver() = default;
  virtual void on_spawn(const Spawned& spawned) = 0;
  /// number: of deliveries that the actor has taken.
  virtual void on_stop(ActorId actor, std::uint64_t number, const Error& reason) = 0;
  virtual void on_restart(ActorId actor, std::uint64_t number, const Error& reason) = 0;
  /// Before the handler runs. An error stops the system: a replay's divergence.
  virtual Result<void> on_delivery(const Delivery& delivery) = 0;
  /// A clock read inside delivery `number`: returns the time that the actor sees (`real` when recording).
  virtual Result<Time> on_clock_read(ActorId actor, std::uint64_t number, Time real) = 0;
  /// A digest that the actor noted (a decode step's logits, its state between steps).
  virtual Result<void> on_note(ActorId actor, std::uint64_t number, std::string_view what, const ContentDigest& digest) = 0;
  /// The handler of this delivery begins a training step.
  virtual Result<void> on_begin_step(ActorId actor, std::uint64_t number, std::uint64_t step) = 0;
  /// On the thread of on_delivery, after the handler ended or suspended.
  virtual void on_handled(ActorId actor, std::uint64_t number) = 0;
  /// After on_handled: what of the actor's state is shown between messages, when it is small.
  virtual Result<void> on_state(ActorId actor, std::uint64_t number, const ContentDigest& digest, std::string_view type, Value (*to_value)(const void*), const void* state) = 0;
};

/// A replay's order: which message an actor takes next. Thread-safe.
class DeliveryGate {
 public:
  virtual ~DeliveryGate() = default;
  struct Next {
    Origin origin;
    EnvelopeKind kind = EnvelopeKind::tell;
  };
  /// The record's delivery `number` of the actor; nothing when the record ends there.
  virtual std::optional<Next> next(ActorId actor, std::uint64_t number) = 0;
};

}  // namespace troupe
