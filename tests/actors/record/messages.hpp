#pragma once

#include <map>
#include <string>
#include <string_view>

#include "actors/delivery.hpp"
#include "actors/envelope.hpp"

// Deliveries without an actor system.
namespace troupe::record {

struct Ping {
  std::uint64_t round = 0;
  std::string note;
  TROUPE_FIELDS(round, note)
};
struct Pong {
  std::vector<float> values;
  TROUPE_FIELDS(values)
};

/// Counts what a real system would count, and shows an observer deliveries to actors by name.
class Scene {
 public:
  explicit Scene(DeliveryObserver& observer) : observer_(observer) {}

  void spawn(std::string_view name, Rank rank = Rank{0}) { observer_.on_spawn({.actor = actor_id(name), .name = name, .class_name = "test::Actor", .gang = "", .rank = rank}); }

  /// From "" for the outside.
  template <class T>
  Result<void> deliver(std::string_view to, std::string_view from, const T& message, EnvelopeKind kind = EnvelopeKind::tell) {
    EnvelopePtr envelope = make_envelope<T>(message);
    const ActorId sender = from.empty() ? kOutside : actor_id(from);
    envelope->origin = {.sender = sender, .sequence = sent_[sender]++};
    envelope->to = actor_id(to);
    envelope->kind = kind;
    return deliver(to, *envelope);
  }
  Result<void> deliver(std::string_view to, const Envelope& envelope) {
    return observer_.on_delivery({.actor = actor_id(to), .number = delivered_[actor_id(to)]++, .envelope = &envelope, .actor_name = to});
  }
  Result<Time> clock(std::string_view actor, Time real) { return observer_.on_clock_read(actor_id(actor), current(actor), real); }
  Result<void> note(std::string_view actor, std::string_view what, std::uint64_t digest) {
    return observer_.on_note(actor_id(actor), current(actor), what, {.whole = digest, .bytes = 8, .fields = {}});
  }
  template <class T>
  Result<void> state(std::string_view actor, const T& state) {
    return observer_.on_state(
        actor_id(actor), current(actor), content_digest(state), type_name<T>(),
        [](const void* s) { return to_value(*static_cast<const T*>(s)); }, &state);
  }

 private:
  std::uint64_t current(std::string_view actor) { return delivered_[actor_id(actor)] - 1; }

  DeliveryObserver& observer_;
  std::map<ActorId, std::uint64_t> sent_, delivered_;
};

}  // namespace troupe::record
