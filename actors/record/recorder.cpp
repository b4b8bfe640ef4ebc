#include "actors/record/recorder.hpp"

#include <algorithm>
#include <utility>

#include "actors/base/monotonic.hpp"
#include "actors/envelope.hpp"

namespace troupe::record {
namespace {

/// Adds the time until its end to what recording cost the actors.
class CostTimer {
 public:
  CostTimer(Journal& journal, Recorder::Clock clock) : journal_(journal), clock_(clock), start_(clock()) {}
  ~CostTimer() { journal_.add_cost(clock_() - start_); }
  CostTimer(const CostTimer&) = delete;
  CostTimer& operator=(const CostTimer&) = delete;
  std::chrono::nanoseconds start() const { return start_; }

 private:
  Journal& journal_;
  const Recorder::Clock clock_;
  const std::chrono::nanoseconds start_;
};

constexpr std::chrono::microseconds kLongRun{100};

/// When the handler that runs on this thread began.
thread_local std::chrono::nanoseconds handler_began{};

void put_digest(FrameWriter& writer, const ContentDigest& digest) {
  writer.u64(digest.whole);
  writer.varint(digest.bytes);
  writer.bytes(std::as_bytes(std::span(digest.fields)));
}

std::uint64_t zigzag(std::int64_t value) { return (static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63); }

}  // namespace

Recorder::Recorder(Journal& journal, RecordLevel level, Clock clock) : journal_(journal), level_(level), clock_(clock), began_(clock()) {
  actors_.emplace(static_cast<std::uint64_t>(kOutside), 0);
}

std::uint32_t Recorder::actor_index(FrameWriter& writer, ActorId actor) {
  const auto id = static_cast<std::uint64_t>(actor);
  const auto [at, added] = actors_.try_emplace(id, static_cast<std::uint32_t>(actors_.size()));
  if (added) {
    writer.begin(EntryType::actor);
    writer.varint(at->second);
    writer.u64(id);
    writer.end();
  }
  return at->second;
}

std::uint32_t Recorder::name_index(FrameWriter& writer, TypeId type, std::string_view text) {
  const auto id = static_cast<std::uint64_t>(type);
  const auto [at, added] = id != 0 ? types_.try_emplace(id, name_count_) : names_.try_emplace(digest64(text), name_count_);
  if (added) {
    writer.begin(EntryType::name);
    writer.varint(name_count_++);
    writer.u64(id);
    writer.text(text);
    writer.end();
  }
  return at->second;
}

Result<void> Recorder::outcome() const {
  if (!journal_.failed()) return {};
  return *journal_.error();
}

void Recorder::on_spawn(const Spawned& spawned) {
  const CostTimer timer(journal_, clock_);
  journal_.append([&](FrameWriter& writer) {
    const std::uint32_t index = actor_index(writer, spawned.actor);
    writer.begin(EntryType::spawned);
    writer.varint(index);
    writer.text(spawned.name);
    writer.text(spawned.class_name);
    writer.text(spawned.gang);
    writer.varint(troupe::index(spawned.rank));
    writer.end();
  });
}

void Recorder::on_stop(ActorId actor, std::uint64_t number, const Error& reason) { record_stop(EntryType::stopped, actor, number, reason); }
void Recorder::on_restart(ActorId actor, std::uint64_t number, const Error& reason) { record_stop(EntryType::restarted, actor, number, reason); }

void Recorder::record_stop(EntryType entry, ActorId actor, std::uint64_t number, const Error& reason) {
  const CostTimer timer(journal_, clock_);
  journal_.append([&](FrameWriter& writer) {
    const std::uint32_t index = actor_index(writer, actor);
    writer.begin(entry);
    writer.varint(index);
    writer.varint(number);
    writer.varint(static_cast<std::uint16_t>(reason.code));
    writer.text(reason.detail);
    writer.end();
  });
}

Result<void> Recorder::on_delivery(const Delivery& delivery) {
  const Envelope& envelope = *delivery.envelope;
  if (envelope.kind == EnvelopeKind::system) return outcome();
  const CostTimer timer(journal_, clock_);
  const ContentDigest digest = envelope.type->digest(envelope.payload());
  const bool with_payload = level_ == RecordLevel::full || envelope.origin.sender == kOutside;
  thread_local Bytes payload;
  if (with_payload) {
    payload.clear();
    envelope.type->encode(payload, envelope.payload());
  }
  journal_.append([&](FrameWriter& writer) {
    const std::uint32_t type = name_index(writer, envelope.type->id, envelope.type->name);
    const std::uint32_t actor = actor_index(writer, delivery.actor);
    const std::uint32_t sender = actor_index(writer, envelope.origin.sender);
    if (with_payload) record_payload(writer, envelope.origin, payload);
    writer.begin(EntryType::delivery);
    writer.varint(actor);
    writer.varint(delivery.number);
    writer.varint(sender);
    writer.varint(envelope.origin.sequence);
    writer.byte(static_cast<std::uint8_t>(static_cast<std::uint8_t>(envelope.kind) | (with_payload ? kHasPayload : 0)));
    writer.varint(type);
    writer.varint(delivery.sends);
    const std::int64_t us = std::chrono::duration_cast<std::chrono::microseconds>(timer.start() - began_).count();
    writer.varint(zigzag(us - std::exchange(last_us_, us)));
    put_digest(writer, digest);
    writer.end();
  });
  handler_began = clock_();
  return outcome();
}

void Recorder::on_handled(ActorId actor, std::uint64_t number) {
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(clock_() - handler_began);
  if (took < kLongRun) return;
  const CostTimer timer(journal_, clock_);
  journal_.append([&](FrameWriter& writer) {
    const std::uint32_t index = actor_index(writer, actor);
    writer.begin(EntryType::ran);
    writer.varint(index);
    writer.varint(number);
    writer.varint(static_cast<std::uint64_t>(took.count()));
    writer.end();
  });
}

Result<void> Recorder::on_begin_step(ActorId actor, std::uint64_t number, std::uint64_t step) {
  const CostTimer timer(journal_, clock_);
  journal_.append([&](FrameWriter& writer) {
    const std::uint32_t index = actor_index(writer, actor);
    writer.begin(EntryType::begins);
    writer.varint(index);
    writer.varint(number);
    writer.varint(step);
    writer.end();
  });
  return outcome();
}

void Recorder::record_payload(FrameWriter& writer, const Origin& origin, BytesView payload) {
  const std::uint32_t sender = actor_index(writer, origin.sender);
  std::size_t offset = 0;
  do {
    const BytesView piece = payload.subspan(offset, std::min(kPayloadPieceBytes, payload.size() - offset));
    writer.begin(EntryType::payload);
    writer.varint(sender);
    writer.varint(origin.sequence);
    writer.varint(payload.size());
    writer.varint(offset);
    writer.bytes(piece);
    writer.end();
    offset += piece.size();
  } while (offset < payload.size());
}

Result<Time> Recorder::on_clock_read(ActorId actor, std::uint64_t number, Time real) {
  const CostTimer timer(journal_, clock_);
  journal_.append([&](FrameWriter& writer) {
    const std::uint32_t index = actor_index(writer, actor);
    writer.begin(EntryType::clock);
    writer.varint(index);
    writer.varint(number);
    writer.varint(zigzag(real.count()));
    writer.end();
  });
  if (Result<void> wrote = outcome(); !wrote) return std::move(wrote).error();
  return real;
}

void Recorder::record_digest(EntryType entry, ActorId actor, std::uint64_t number, std::string_view name, const ContentDigest& digest) {
  const CostTimer timer(journal_, clock_);
  journal_.append([&](FrameWriter& writer) {
    const std::uint32_t name_at = name_index(writer, TypeId{}, name);
    const std::uint32_t actor_at = actor_index(writer, actor);
    writer.begin(entry);
    writer.varint(actor_at);
    writer.varint(number);
    writer.varint(name_at);
    put_digest(writer, digest);
    writer.end();
  });
}

Result<void> Recorder::on_note(ActorId actor, std::uint64_t number, std::string_view what, const ContentDigest& digest) {
  record_digest(EntryType::note, actor, number, what, digest);
  return outcome();
}

Result<void> Recorder::on_state(ActorId actor, std::uint64_t number, const ContentDigest& digest, std::string_view type,
                                Value (*)(const void*), const void*) {
  record_digest(EntryType::state, actor, number, type, digest);
  return outcome();
}

void Recorder::mark_step(std::uint64_t step) {
  const CostTimer timer(journal_, clock_);
  journal_.append([&](FrameWriter& writer) {
    writer.begin(EntryType::step);
    writer.varint(step);
    writer.end();
  });
}

}  // namespace troupe::record
