#include "actors/system.hpp"

#include <algorithm>
#include <array>

#include "actors/base/check.hpp"

namespace troupe {
namespace {

constexpr std::uint64_t kFromSystem = std::uint64_t{1} << 63;

std::uint64_t next_instance() {
  static std::atomic<std::uint64_t> instances{0};
  return ++instances;
}

/// A thread's last lookups, so that a local send takes no lock. Cells live as long as their system, and instances are never reused.
struct LookupCache {
  struct Entry {
    std::uint64_t instance = 0;
    ActorId id{};
    Cell* cell = nullptr;
  };
  std::array<Entry, 256> entries;
  Entry& at(ActorId id) { return entries[static_cast<std::uint64_t>(id) % 256]; }
};
thread_local LookupCache lookup_cache;

const bool kRegistered = (message_type<StopActor>(), message_type<RestartActor>(), message_type<ChildFailed>(), message_type<MonitorActor>(),
                          message_type<LinkActor>(), message_type<PeerLost>(), message_type<SpawnActor>(), message_type<Acknowledged>(), message_type<StillPaused>(),
                          message_type<Undeliverable>(), message_type<ActorRef>(), message_type<SyncRank>(), message_type<ShutDown>(), true);

}  // namespace

System::System(Executor& executor, SystemOptions options)
    : executor_(executor), options_(std::move(options)), rank_(options_.link != nullptr ? options_.link->rank() : Rank{0}), instance_(next_instance()) {
  TROUPE_CHECK(kRegistered, "the runtime's own messages are known");
  if (options_.link != nullptr) options_.link->start(*this);
}

System::~System() { stop(); }

void System::stop() {
  if (stopped_.exchange(true)) return;
  // Before the threads are joined: one of them may wait for such an answer.
  fail_outside_asks(std::nullopt, {ErrorCode::cancelled, "the actor system has stopped"});
  executor_.stop();  // what is sent is sent before the link says goodbye
  if (options_.link != nullptr) options_.link->stop();
}

Cell* System::find(ActorId id) const {
  LookupCache::Entry& entry = lookup_cache.at(id);
  if (entry.instance == instance_ && entry.id == id) return entry.cell;
  const std::shared_lock lock(cells_mutex_);
  const auto at = cells_.find(id);
  if (at == cells_.end()) return nullptr;
  entry = {instance_, id, at->second.get()};
  return entry.cell;
}

ActorRef System::resolve(ActorRef ref) const {
  if (ref.rank != kRankUnknown || ref.id == kOutside) return {ref.id, ref.rank == kRankUnknown ? rank_ : ref.rank};
  const auto at = options_.directory.find(ref.id);
  return {ref.id, at == options_.directory.end() ? rank_ : at->second};
}

Result<ActorRef> System::spawn_class(std::string name, const ActorClass& actor_class, Bytes arguments, const SpawnOptions& options, ActorRef parent) {
  const ActorId id = actor_id(name);
  auto cell = std::make_unique<Cell>(*this, id, std::move(name), actor_class, std::move(arguments), options, parent);
  if (Result<void> made = cell->create_actor(); !made) return made.error();
  const Cell& spawned = *cell;
  {
    const std::unique_lock lock(cells_mutex_);
    std::unique_ptr<Cell>& place = cells_[id];
    if (place) return Error{ErrorCode::bad_input, "actor name: want one that is free, got " + cell->name()};
    place = std::move(cell);
  }
  if (options_.observer != nullptr) {
    const std::string_view full = spawned.name();
    const std::string_view gang = options.gang_member ? full.substr(0, full.rfind('/')) : std::string_view();
    options_.observer->on_spawn({.actor = id, .name = full, .class_name = actor_class.name, .gang = gang, .rank = rank_});
  }
  return spawned.ref();
}

Result<void> System::send_outside(ActorRef to, EnvelopePtr envelope, EnvelopeKind kind, OutsideReply done) {
  const ActorRef receiver = resolve(to);
  if (stopped_.load()) return Error{ErrorCode::cancelled, "the actor system has stopped"};
  if (receiver.rank == rank_) {
    const Cell* cell = find(receiver.id);
    if (cell == nullptr || cell->is_stopped()) return Error{ErrorCode::actor_unreachable, "no such actor"};
    if (cell->is_full()) return Error{ErrorCode::mailbox_full, cell->name() + ": its mailbox is full"};
  }
  envelope->kind = kind;
  envelope->origin = {kOutside, ++outside_sent_};
  envelope->sender = {kOutside, rank_};
  envelope->correlation = envelope->origin.sequence;
  if (done) {
    const std::lock_guard lock(mutex_);
    if (stopped_.load()) return Error{ErrorCode::cancelled, "the actor system has stopped"};
    outside_asks_[envelope->correlation] = {receiver.rank, std::move(done)};
  }
  if (receiver.rank == rank_) {
    route(receiver, std::move(envelope), nullptr);
    return {};
  }
  envelope->to = receiver.id;
  Result<void> sent = send_remote(receiver, *envelope, nullptr);
  if (!sent) {
    const std::lock_guard lock(mutex_);
    outside_asks_.erase(envelope->correlation);
  }
  return sent;
}

void System::inject(ActorRef to, EnvelopePtr envelope, EnvelopeKind kind, Origin origin) {
  envelope->kind = kind;
  envelope->origin = origin;
  envelope->sender = {kOutside, rank_};
  envelope->correlation = origin.sequence;
  route(to, std::move(envelope), nullptr);
}

void System::route(ActorRef to, EnvelopePtr envelope, Cell* from) {
  const ActorRef receiver = resolve(to);
  envelope->to = receiver.id;
  if (receiver.rank != rank_) {
    if (Result<void> sent = send_remote(receiver, *envelope, from); !sent) bounce(*envelope, sent.error());
    return;
  }
  if (receiver.id == kOutside) return deliver_outside(std::move(envelope));
  Cell* cell = find(receiver.id);
  if (cell == nullptr) return bounce(*envelope, {ErrorCode::actor_unreachable, "no such actor"});
  cell->push(std::move(envelope));
  // A full sender does not wait for others: two full mailboxes that feed each other would stand still.
  if (from != nullptr && cell != from && options_.gate == nullptr && cell->is_full() && !from->is_full()) from->meet_pressure(receiver);
}

Result<void> System::send_remote(ActorRef to, const Envelope& envelope, Cell* from) {
  if (options_.link == nullptr || index(to.rank) >= options_.link->size()) return Error{ErrorCode::actor_unreachable, "no such rank"};
  WireEnvelope wire{.kind = envelope.kind, .to = to.id, .sender = envelope.sender, .origin = envelope.origin,
                    .correlation = envelope.correlation, .type = envelope.type->id, .payload = {}};
  envelope.type->encode(wire.payload, envelope.payload());
  const bool counted = is_counted(envelope.kind, to.id, envelope.origin.sender);
  const bool used_up = counted && windows_.sent(to.id);  // first: the acknowledgement may come before send() returns
  Result<void> sent = options_.link->send(to.rank, std::move(wire));
  if (!sent && counted) windows_.not_sent(to.id);
  if (sent && from != nullptr && options_.gate == nullptr && !from->is_full() && (used_up || options_.link->is_congested(to.rank))) from->meet_pressure(to);
  return sent;
}

void System::route_system(ActorRef to, EnvelopePtr envelope) {
  envelope->kind = EnvelopeKind::system;
  const ActorRef receiver = resolve(to);
  if (receiver.rank == rank_ && find(receiver.id) == nullptr) {
    if (envelope->type == &message_type<LinkActor>()) {
      return route_system(envelope->as<LinkActor>().other, make_envelope<StopActor>(Error{ErrorCode::actor_unreachable, "the actor that it is linked to is not there"}));
    }
    if (envelope->type != &message_type<MonitorActor>()) return;
    const MonitorActor& monitor = envelope->as<MonitorActor>();
    EnvelopePtr down = make_envelope<Down>(receiver, Error{ErrorCode::actor_unreachable, "no such actor"});
    down->kind = EnvelopeKind::down;
    down->origin = {receiver.id, kFromSystem | monitor.sequence};
    down->sender = receiver;
    return route(monitor.watcher, std::move(down), nullptr);
  }
  route(receiver, std::move(envelope), nullptr);
}

// What cannot be delivered becomes the asker's error, the watcher's Down, or the sender's Undeliverable.
void System::bounce(const Envelope& envelope, const Error& reason) {
  const Origin origin{envelope.to, kFromSystem | envelope.origin.sequence};
  if (envelope.kind == EnvelopeKind::ask) {
    EnvelopePtr answer = make_envelope<Error>(reason);
    answer->kind = EnvelopeKind::error_reply;
    answer->correlation = envelope.correlation;
    answer->origin = origin;
    answer->sender = {envelope.to, rank_};
    return route(envelope.sender, std::move(answer), nullptr);
  }
  if (envelope.kind == EnvelopeKind::system && envelope.type == &message_type<MonitorActor>()) {
    const MonitorActor& monitor = const_cast<Envelope&>(envelope).as<MonitorActor>();
    EnvelopePtr down = make_envelope<Down>(ActorRef{envelope.to, kRankUnknown}, reason);
    down->kind = EnvelopeKind::down;
    down->origin = {envelope.to, kFromSystem | monitor.sequence};
    return route(monitor.watcher, std::move(down), nullptr);
  }
  if (envelope.kind == EnvelopeKind::system && envelope.type == &message_type<LinkActor>()) {
    return route_system(const_cast<Envelope&>(envelope).as<LinkActor>().other, make_envelope<StopActor>(reason));
  }
  if (envelope.kind != EnvelopeKind::tell || envelope.origin.sender == kOutside) return;
  EnvelopePtr notice = make_envelope<Undeliverable>(ActorRef{envelope.to, kRankUnknown}, std::string(envelope.type->name), reason);
  notice->kind = EnvelopeKind::down;
  notice->origin = origin;
  route(envelope.sender, std::move(notice), nullptr);
}

void System::deliver_outside(EnvelopePtr envelope) {
  const bool is_answer = envelope->kind == EnvelopeKind::reply || envelope->kind == EnvelopeKind::error_reply;
  if (!is_answer) return handle_own(*envelope);
  OutsideReply done;
  {
    const std::lock_guard lock(mutex_);
    const auto at = outside_asks_.find(envelope->correlation);
    if (at == outside_asks_.end()) return;
    done = std::move(at->second.done);
    outside_asks_.erase(at);
  }
  done(std::move(envelope));
}

// Messages to the system itself.
void System::handle_own(Envelope& envelope) {
  if (envelope.type == &message_type<SpawnActor>()) {
    SpawnActor& wanted = envelope.as<SpawnActor>();
    const ActorClass* actor_class = find_actor_class(wanted.actor_class);
    Result<ActorRef> spawned = Error{ErrorCode::unsupported, "no such actor class: " + wanted.name};
    if (actor_class != nullptr) spawned = spawn_class(std::move(wanted.name), *actor_class, std::move(wanted.arguments), wanted.options, wanted.parent);
    EnvelopePtr answer = spawned ? make_envelope<ActorRef>(*spawned) : make_envelope<Error>(spawned.error());
    answer->kind = spawned ? EnvelopeKind::reply : EnvelopeKind::error_reply;
    answer->correlation = envelope.correlation;
    answer->origin = {actor_id("system"), kFromSystem | envelope.origin.sequence};
    answer->sender = {kOutside, rank_};
    return route(envelope.sender, std::move(answer), nullptr);
  }
  if (envelope.type == &message_type<Acknowledged>()) {
    const Acknowledged& acknowledged = envelope.as<Acknowledged>();
    windows_.acknowledged(acknowledged.actor, acknowledged.count);
    wake_paused(acknowledged.actor);
  } else if (envelope.type == &message_type<StillPaused>()) {
    const ActorId actor = envelope.as<StillPaused>().actor;
    const Cell* cell = find(actor);
    if (cell == nullptr || cell->is_stopped() || cell->may_wait()) acknowledge(envelope.sender.rank, actor, 0);
  } else if (envelope.type == &message_type<SyncRank>()) {
    Result<void> synced = options_.on_sync ? options_.on_sync(envelope.as<SyncRank>().mark) : Result<void>{};
    EnvelopePtr answer = synced ? make_envelope<Done>() : make_envelope<Error>(synced.error());
    answer->kind = synced ? EnvelopeKind::reply : EnvelopeKind::error_reply;
    answer->correlation = envelope.correlation;
    answer->sender = {kOutside, rank_};
    route(envelope.sender, std::move(answer), nullptr);
  } else if (envelope.type == &message_type<ShutDown>()) {
    if (options_.on_shut_down) options_.on_shut_down(envelope.as<ShutDown>().reason);
  } else if (envelope.kind == EnvelopeKind::ask) {
    bounce(envelope, {ErrorCode::unsupported, "the system has no handler for " + std::string(envelope.type->name)});
  }
}

Result<void> System::sync_others(std::uint64_t mark) {
  if (options_.link == nullptr) return {};
  std::vector<std::future<Result<Done>>> answers;
  for (std::uint32_t rank = 0; rank < options_.link->size(); ++rank) {
    if (Rank{rank} != rank_) answers.push_back(ask<SyncRank>({kOutside, Rank{rank}}, mark));
  }
  Result<void> result;
  for (std::future<Result<Done>>& answer : answers) {
    if (const Result<Done> done = answer.get(); !done) result = done.error();
  }
  return result;
}

void System::shut_down_others(const Error& reason) {
  if (options_.link == nullptr) return;
  for (std::uint32_t rank = 0; rank < options_.link->size(); ++rank) {
    if (Rank{rank} != rank_) (void)tell<ShutDown>({kOutside, Rank{rank}}, reason);
  }
}

void System::on_envelope(Rank from, WireEnvelope wire) {
  const bool counted = is_counted(wire.kind, wire.to, wire.origin.sender);
  const MessageType* type = find_message_type(wire.type);
  Result<EnvelopePtr> decoded = type == nullptr ? Result<EnvelopePtr>(Error{ErrorCode::unsupported, "a message type that this build does not know"}) : type->decode(wire.payload);
  if (!decoded) {
    EnvelopePtr broken = make_envelope<Done>();
    broken->kind = wire.kind;
    broken->origin = wire.origin;
    broken->sender = wire.sender;
    broken->correlation = wire.correlation;
    broken->to = wire.to;
    Error error{decoded.error().code, "message from rank " + std::to_string(index(from)) + ": " + decoded.error().detail};
    if (counted) acknowledge(from, wire.to, 1);
    if (wire.kind != EnvelopeKind::reply && wire.kind != EnvelopeKind::error_reply) return bounce(*broken, error);
    // An answer that cannot be read is an answer all the same: its asker must not wait for its deadline.
    EnvelopePtr answer = make_envelope<Error>(std::move(error));
    answer->kind = EnvelopeKind::error_reply;
    answer->origin = wire.origin;
    answer->sender = wire.sender;
    answer->correlation = wire.correlation;
    return route({wire.to, rank_}, std::move(answer), nullptr);
  }
  EnvelopePtr envelope = std::move(*decoded);
  envelope->kind = wire.kind;
  envelope->origin = wire.origin;
  envelope->sender = wire.sender;
  envelope->correlation = wire.correlation;
  envelope->to = wire.to;
  if (wire.to == kOutside) return deliver_outside(std::move(envelope));
  if (envelope->kind == EnvelopeKind::system) return route_system({wire.to, rank_}, std::move(envelope));
  Cell* cell = find(wire.to);
  if (cell == nullptr) {
    if (counted) acknowledge(from, wire.to, 1);
    return bounce(*envelope, {ErrorCode::actor_unreachable, "no such actor"});
  }
  cell->push(std::move(envelope));
  if (counted) arrived(from, *cell);
}

void System::on_relief(Rank peer) {
  std::vector<std::pair<Cell*, std::uint64_t>> ready;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(paused_, [&](const auto& entry) {
      if (entry.second.receiver.rank != peer) return false;
      ready.emplace_back(entry.first, entry.second.generation);
      return true;
    });
  }
  for (const auto& [sender, generation] : ready) sender->wake(generation);
}

void System::on_peer_lost(Rank peer, const Error& reason) {
  if (say_lost(peer, reason, false) && options_.on_peer_lost) options_.on_peer_lost(peer, reason);
}

void System::on_peer_left(Rank peer, const Error& reason) { (void)say_lost(peer, reason, true); }

bool System::say_lost(Rank peer, const Error& reason, bool is_orderly) {
  {
    const std::lock_guard lock(mutex_);
    if (!lost_.emplace(peer, reason).second) return false;
  }
  for_each_cell([&](Cell& cell) {
    EnvelopePtr lost = make_envelope<PeerLost>(peer, reason, is_orderly);
    lost->kind = EnvelopeKind::system;
    cell.push(std::move(lost));
  });
  on_relief(peer);
  fail_outside_asks(peer, reason);
  return true;
}

void System::fail_outside_asks(std::optional<Rank> peer, const Error& reason) {
  std::vector<OutsideReply> failed;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(outside_asks_, [&](auto& entry) {
      if (peer && entry.second.to != *peer) return false;
      failed.push_back(std::move(entry.second.done));
      return true;
    });
  }
  for (const OutsideReply& done : failed) {
    EnvelopePtr answer = make_envelope<Error>(reason);
    answer->kind = EnvelopeKind::error_reply;
    done(std::move(answer));
  }
}

void System::for_each_cell(const std::function<void(Cell&)>& call) {
  const std::shared_lock lock(cells_mutex_);
  for (const auto& [id, cell] : cells_) call(*cell);
}

bool System::pause_for(ActorRef receiver, Cell& sender, std::uint64_t generation) {
  const std::lock_guard lock(mutex_);  // whoever relieves the receiver from here on finds the sender
  paused_[&sender] = {receiver, generation};
  bool must_wait = false;
  if (receiver.rank == rank_) {
    Cell* cell = find(receiver.id);
    must_wait = cell != nullptr && !cell->is_stopped() && cell->await_room();
  } else {
    must_wait = !lost_.contains(receiver.rank) && (windows_.is_used_up(receiver.id) || options_.link->is_congested(receiver.rank));
  }
  if (!must_wait) paused_.erase(&sender);
  return must_wait;
}

bool System::may_stay_paused(Cell& sender) {
  Pause pause;
  {
    const std::lock_guard lock(mutex_);
    const auto at = paused_.find(&sender);
    if (at == paused_.end()) return false;
    pause = at->second;
    if (sender.pause_generation() != pause.generation) {
      paused_.erase(at);
      return false;
    }
  }
  if (pause.receiver.rank == rank_) {
    const Cell* receiver = find(pause.receiver.id);
    if (receiver != nullptr && !receiver->is_stopped() && !receiver->may_wait()) return true;
  } else {
    EnvelopePtr question = make_envelope<StillPaused>(pause.receiver.id);
    question->kind = EnvelopeKind::system;
    question->sender = {kOutside, rank_};
    if (send_system(pause.receiver.rank, *question)) return true;
  }
  sender.wake(pause.generation);
  return false;
}

void System::wake_paused(ActorId receiver) {
  std::vector<std::pair<Cell*, std::uint64_t>> ready;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(paused_, [&](const auto& entry) {
      if (entry.second.receiver.id != receiver) return false;
      ready.emplace_back(entry.first, entry.second.generation);
      return true;
    });
  }
  for (const auto& [sender, generation] : ready) sender->wake(generation);
}

void System::relieve(ActorId receiver) {
  wake_paused(receiver);
  for (const auto& [rank, count] : windows_.take_owed(receiver)) acknowledge(rank, receiver, count);
}

bool System::is_counted(EnvelopeKind kind, ActorId to, ActorId sender) const {
  return options_.gate == nullptr && to != kOutside && sender != kOutside && (kind == EnvelopeKind::tell || kind == EnvelopeKind::ask);
}

void System::arrived(Rank from, Cell& receiver) {
  if (!windows_.arrived(receiver.id(), from)) return;
  if (receiver.is_full() && !receiver.is_stopped() && receiver.await_room()) return;  // relieve() acknowledges
  if (const std::uint32_t count = windows_.take_owed(receiver.id(), from)) acknowledge(from, receiver.id(), count);
}

void System::acknowledge(Rank to, ActorId receiver, std::uint32_t count) {
  EnvelopePtr notice = make_envelope<Acknowledged>(receiver, count);
  notice->kind = EnvelopeKind::system;
  notice->sender = {kOutside, rank_};
  (void)send_system(to, *notice);  // a rank that is lost has nobody who waits
}

Result<void> System::send_system(Rank to, const Envelope& envelope) {
  return send_remote({kOutside, to}, envelope, nullptr);
}

std::optional<ActorLook> System::look(ActorId actor) const {
  const Cell* cell = find(actor);
  return cell == nullptr ? std::nullopt : std::optional(cell->look());
}

void System::poke(ActorId actor) {
  if (find(actor) != nullptr) route_system({actor, rank_}, make_envelope<Done>());
}

void System::begin_in_middle(ActorId actor, std::uint64_t deliveries, std::uint64_t sent) {
  if (Cell* cell = find(actor)) cell->begin_in_middle(deliveries, sent);
}

void System::fatal(const Error& error) {
  if (fatal_called_.exchange(true)) return;
  if (options_.on_fatal) options_.on_fatal(error);
}

std::uint64_t System::delivered() const {
  std::uint64_t sum = 0;
  for (const ActorView& view : actors()) sum += view.deliveries;
  return sum;
}

std::vector<System::ActorView> System::actors() const {
  std::vector<ActorView> views;
  const std::shared_lock lock(cells_mutex_);
  for (const auto& [id, cell] : cells_) {
    views.push_back({.name = cell->name(), .id = id, .actor_class = &cell->actor_class(), .actor = cell->actor(),
                     .deliveries = cell->deliveries(), .queued = cell->depth()});
  }
  std::sort(views.begin(), views.end(), [](const ActorView& a, const ActorView& b) { return a.name < b.name; });
  return views;
}

}  // namespace troupe
