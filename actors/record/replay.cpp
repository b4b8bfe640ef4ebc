#include "actors/record/replay.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/envelope.hpp"

namespace troupe::record {
namespace {

std::string_view to_string(EnvelopeKind kind) {
  constexpr std::string_view names[] = {"tell", "ask", "reply", "error reply", "timer", "deadline", "down", "system"};
  const auto at = static_cast<std::size_t>(kind);
  return at < std::size(names) ? names[at] : "unknown";
}

/// The first field whose digest differs, and both digests; without one (counts differ, or the parts agree and the whole does not) the
/// whole's.
struct FieldDifference {
  std::string name;
  std::string recorded, got;
};

FieldDifference first_difference(std::span<const std::uint32_t> recorded, const ContentDigest& got, std::uint64_t recorded_whole,
                                 const Value& shown) {
  const std::size_t common = std::min(recorded.size(), got.fields.size());
  for (std::size_t i = 0; i < common; ++i) {
    if (recorded[i] == got.fields[i]) continue;
    const bool named = shown.kind == Value::Kind::record && i < shown.names.size();
    return {.name = named ? shown.names[i] : fmt::format("{}", i),
            .recorded = fmt::format("{:08x}", recorded[i]),
            .got = fmt::format("{:08x}{}", got.fields[i], named ? " (" + shown.children[i].brief() + ")" : "")};
  }
  return {.name = "(whole)", .recorded = fmt::format("{:016x}", recorded_whole), .got = fmt::format("{:016x}", got.whole)};
}

}  // namespace

ReplayGate::ReplayGate(const Segment& segment) {
  for (const auto& [id, actor] : segment.actors) actors_.emplace(id, &actor);
}

std::optional<DeliveryGate::Next> ReplayGate::next(ActorId actor, std::uint64_t number) {
  const auto at = actors_.find(actor);
  if (at == actors_.end() || number >= at->second->deliveries.size()) return std::nullopt;
  const RecordedDelivery& delivery = at->second->deliveries[number];
  return Next{.origin = delivery.origin, .kind = delivery.kind};
}

ReplayChecker::ReplayChecker(const Segment& segment) : segment_(segment) {
  for (const auto& [id, actor] : segment.actors) cursors_.emplace(id, Cursor{.history = &actor});
}

void ReplayChecker::begin_in_middle(ActorId actor, std::uint64_t number) {
  const auto at = cursors_.find(actor);
  if (at == cursors_.end()) return;
  Cursor& cursor = at->second;
  const auto before = [number](const auto& entry) { return entry.number < number; };
  const ActorHistory& history = *cursor.history;
  cursor.delivered = number;
  cursor.clocks = static_cast<std::size_t>(std::partition_point(history.clocks.begin(), history.clocks.end(), before) - history.clocks.begin());
  cursor.notes = static_cast<std::size_t>(std::partition_point(history.notes.begin(), history.notes.end(), before) - history.notes.begin());
  cursor.states = static_cast<std::size_t>(std::partition_point(history.states.begin(), history.states.end(), before) - history.states.begin());
}

std::string ReplayChecker::where(const Cursor& cursor, std::uint64_t number) const {
  const ActorHistory& history = *cursor.history;
  const std::string_view type =
      number < history.deliveries.size() ? std::string_view(segment_.names[history.deliveries[number].type]) : "no message";
  return fmt::format("actor {}, message {}, {}", segment_.name_of(history.id), number, type);
}

bool ReplayChecker::may_be_lost(const Cursor& cursor, std::uint64_t number) const {
  return segment_.ends_at_checkpoint && number + 1 == cursor.history->deliveries.size();
}

Error ReplayChecker::diverge(std::string detail) {
  const std::lock_guard lock(mutex_);
  if (!first_) first_ = Error{ErrorCode::divergence, std::move(detail)};
  diverged_.store(true);
  return *first_;
}

std::optional<Error> ReplayChecker::stopped() const {
  if (!diverged_.load(std::memory_order_relaxed)) return std::nullopt;  // a late look only checks one call more
  return divergence();
}

std::optional<Error> ReplayChecker::divergence() const {
  const std::lock_guard lock(mutex_);
  return first_;
}

Result<ReplayChecker::Cursor*> ReplayChecker::cursor_of(ActorId actor, std::string_view name, std::uint64_t number) {
  if (std::optional<Error> before = stopped()) return *before;
  const auto at = cursors_.find(actor);
  if (at != cursors_.end()) return &at->second;
  const std::string shown = name.empty() ? segment_.name_of(actor) : std::string(name);
  return diverge(fmt::format("actor {}, message {}: recorded no such actor, got one", shown, number));
}

void ReplayChecker::on_spawn(const Spawned& spawned) {
  const ActorId actor = spawned.actor;
  const std::string_view class_name = spawned.class_name;
  const auto at = cursors_.find(actor);
  if (at == cursors_.end() || at->second.spawned) return;  // one that never gets a message is no difference
  Cursor& cursor = at->second;
  if (!cursor.history->class_name.empty() && cursor.history->class_name != class_name) {
    (void)diverge(fmt::format("actor {}: recorded class {}, got {}", segment_.name_of(actor), cursor.history->class_name, class_name));
  }
  cursor.spawned = true;
  left_ += static_cast<std::int64_t>(cursor.history->deliveries.size());
}

// What the handler of an earlier message did when it was recorded and did not do now.
Result<void> ReplayChecker::check_left_behind(const Cursor& cursor, std::uint64_t before) {
  const ActorHistory& history = *cursor.history;
  if (cursor.clocks < history.clocks.size() && history.clocks[cursor.clocks].number < before) {
    return diverge(fmt::format("{}, clock: recorded a read, got none", where(cursor, history.clocks[cursor.clocks].number)));
  }
  if (cursor.notes < history.notes.size() && history.notes[cursor.notes].number < before) {
    const RecordedDigest& note = history.notes[cursor.notes];
    return diverge(
        fmt::format("{}, note {}: recorded digest {:016x}, got none", where(cursor, note.number), segment_.names[note.name], note.digest));
  }
  if (cursor.states < history.states.size() && history.states[cursor.states].number < before) {
    const RecordedDigest& state = history.states[cursor.states];
    return diverge(fmt::format("{}, state {}: recorded digest {:016x}, got none", where(cursor, state.number), segment_.names[state.name],
                               state.digest));
  }
  return {};
}

Result<void> ReplayChecker::on_delivery(const Delivery& delivery) {
  const Envelope& envelope = *delivery.envelope;
  if (envelope.kind == EnvelopeKind::system) return {};
  Result<Cursor*> found = cursor_of(delivery.actor, delivery.actor_name, delivery.number);
  if (!found) return std::move(found).error();
  Cursor& cursor = **found;
  const ActorHistory& history = *cursor.history;
  if (Result<void> done = check_left_behind(cursor, delivery.number); !done) return done;
  if (delivery.number >= history.deliveries.size()) {
    return diverge(fmt::format("actor {}, message {}: recorded {} messages, got {} after them", delivery.actor_name, delivery.number,
                               history.deliveries.size(), envelope.type->name));
  }
  const RecordedDelivery& recorded = history.deliveries[delivery.number];
  const std::string& type = segment_.names[recorded.type];
  if (type != envelope.type->name)
    return diverge(fmt::format("{}, type: recorded {}, got {}", where(cursor, delivery.number), type, envelope.type->name));
  if (recorded.origin != envelope.origin || recorded.kind != envelope.kind) {
    return diverge(fmt::format("{}, origin: recorded {} {} of {}, got {} {} of {}", where(cursor, delivery.number),
                               to_string(recorded.kind), recorded.origin.sequence, segment_.name_of(recorded.origin.sender),
                               to_string(envelope.kind), envelope.origin.sequence, segment_.name_of(envelope.origin.sender)));
  }
  const ContentDigest digest = envelope.type->digest(envelope.payload());
  if (digest.whole != recorded.digest || digest.bytes != recorded.bytes) {
    const FieldDifference field =
        first_difference(history.fields_of(recorded), digest, recorded.digest, envelope.type->to_value(envelope.payload()));
    return diverge(
        fmt::format("{}, field {}: recorded digest {}, got {}", where(cursor, delivery.number), field.name, field.recorded, field.got));
  }
  cursor.delivered = delivery.number + 1;
  deliveries_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(digest.bytes, std::memory_order_relaxed);
  --left_;
  return {};
}

Result<Time> ReplayChecker::on_clock_read(ActorId actor, std::uint64_t number, Time real) {
  Result<Cursor*> found = cursor_of(actor, "", number);
  if (!found) return std::move(found).error();
  Cursor& cursor = **found;
  const std::vector<RecordedTime>& clocks = cursor.history->clocks;
  if (cursor.clocks >= clocks.size() && may_be_lost(cursor, number)) return real;
  if (cursor.clocks >= clocks.size() || clocks[cursor.clocks].number != number) {
    return diverge(fmt::format("{}, clock: recorded no such read, got one", where(cursor, number)));
  }
  clock_reads_.fetch_add(1, std::memory_order_relaxed);
  return clocks[cursor.clocks++].time;
}

Result<void> ReplayChecker::on_note(ActorId actor, std::uint64_t number, std::string_view what, const ContentDigest& digest) {
  Result<Cursor*> found = cursor_of(actor, "", number);
  if (!found) return std::move(found).error();
  Cursor& cursor = **found;
  const std::vector<RecordedDigest>& notes = cursor.history->notes;
  if (cursor.notes >= notes.size() && may_be_lost(cursor, number)) return {};
  if (cursor.notes >= notes.size() || notes[cursor.notes].number != number || segment_.names[notes[cursor.notes].name] != what) {
    return diverge(fmt::format("{}, note {}: recorded no such note, got digest {:016x}", where(cursor, number), what, digest.whole));
  }
  const RecordedDigest& recorded = notes[cursor.notes++];
  notes_.fetch_add(1, std::memory_order_relaxed);
  if (recorded.digest == digest.whole) return {};
  return diverge(
      fmt::format("{}, note {}: recorded digest {:016x}, got {:016x}", where(cursor, number), what, recorded.digest, digest.whole));
}

Result<void> ReplayChecker::on_begin_step(ActorId actor, std::uint64_t number, std::uint64_t step) {
  Result<Cursor*> found = cursor_of(actor, "", number);
  if (!found) return std::move(found).error();
  const Cursor& cursor = **found;
  const auto at = std::find_if(cursor.history->begins.begin(), cursor.history->begins.end(), [&](const RecordedStep& each) { return each.number == number; });
  if (at != cursor.history->begins.end() && at->step == step) return {};
  if (at == cursor.history->begins.end() && may_be_lost(cursor, number)) return {};
  return diverge(fmt::format("{}, training step: recorded {}, got {}", where(cursor, number), at == cursor.history->begins.end() ? "none" : std::to_string(at->step), step));
}

Result<void> ReplayChecker::on_state(ActorId actor, std::uint64_t number, const ContentDigest& digest, std::string_view type,
                                     Value (*to_value)(const void*), const void* state) {
  Result<Cursor*> found = cursor_of(actor, "", number);
  if (!found) return std::move(found).error();
  Cursor& cursor = **found;
  const std::vector<RecordedDigest>& states = cursor.history->states;
  if (cursor.states >= states.size() && may_be_lost(cursor, number)) return {};
  if (cursor.states >= states.size() || states[cursor.states].number != number || segment_.names[states[cursor.states].name] != type) {
    return diverge(fmt::format("{}, state {}: recorded no such state, got digest {:016x}", where(cursor, number), type, digest.whole));
  }
  const RecordedDigest& recorded = states[cursor.states++];
  states_.fetch_add(1, std::memory_order_relaxed);
  if (recorded.digest == digest.whole) return {};
  const FieldDifference field = first_difference(cursor.history->fields_of(recorded), digest, recorded.digest, to_value(state));
  return diverge(
      fmt::format("{}, state field {}: recorded digest {}, got {}", where(cursor, number), field.name, field.recorded, field.got));
}

Result<void> ReplayChecker::finish() {
  if (std::optional<Error> before = divergence()) return *before;
  if (!segment_.whole) return {};
  for (const auto& [id, actor] : segment_.actors) {
    const Cursor& cursor = cursors_.find(id)->second;
    if (!cursor.spawned) continue;
    if (cursor.delivered < actor.deliveries.size()) {
      return diverge(
          fmt::format("{}: recorded {} messages, got {}", where(cursor, cursor.delivered), actor.deliveries.size(), cursor.delivered));
    }
    if (Result<void> done = check_left_behind(cursor, cursor.delivered); !done) return done;
  }
  return {};
}

ReplayCounts ReplayChecker::counts() const {
  return {.deliveries = deliveries_.load(std::memory_order_relaxed),
          .bytes = bytes_.load(std::memory_order_relaxed),
          .clock_reads = clock_reads_.load(std::memory_order_relaxed),
          .notes = notes_.load(std::memory_order_relaxed),
          .states = states_.load(std::memory_order_relaxed)};
}

}  // namespace troupe::record
