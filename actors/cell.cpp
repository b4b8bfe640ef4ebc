#include "actors/cell.hpp"

#include "actors/base/check.hpp"
#include "actors/system.hpp"

namespace troupe {
namespace {

constexpr unsigned kBatch = 64;               ///< messages a turn, so that actors share threads fairly
constexpr unsigned kFetchEvery = 16;          ///< messages between looks at the inbox, where a system message may wait
constexpr std::uint64_t kSmallState = 4096;   ///< bytes: larger states are not shown after each message
constexpr Time kPauseLook{50'000'000};        ///< how often a paused sender looks whether the receiver may wait for it
constexpr std::uint64_t kFromSystem = std::uint64_t{1} << 63;

bool is_user(EnvelopeKind kind) {
  return kind == EnvelopeKind::tell || kind == EnvelopeKind::ask || kind == EnvelopeKind::timer || kind == EnvelopeKind::down;
}
bool is_answer(EnvelopeKind kind) {
  return kind == EnvelopeKind::reply || kind == EnvelopeKind::error_reply || kind == EnvelopeKind::deadline;
}

}  // namespace

namespace actor_detail {
Error error_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const ErrorException& error) {
    return error.error();
  } catch (const std::exception& error) {
    return {ErrorCode::actor_failed, error.what()};
  } catch (...) {
    return {ErrorCode::actor_failed, "an exception that is not a std::exception"};
  }
}
}  // namespace actor_detail

Cell::Cell(System& system, ActorId id, std::string name, const ActorClass& actor_class, Bytes arguments, const SpawnOptions& options, ActorRef parent)
    : system_(system), class_(actor_class), id_(id), name_(std::move(name)), arguments_(std::move(arguments)), parent_(parent),
      context_(*this), mailbox_capacity_(options.mailbox_capacity) {
  if (options.children.strategy != Supervision::Strategy::stop) children_ = std::make_unique<const Supervision>(options.children);
  if (options.own_thread) lane_ = system_.executor_.make_lane();
}

Cell::~Cell() {
  if (root_.handle) root_.handle.destroy();
  if (actor_ != nullptr) class_.destroy(actor_.load());
  if (Envelope* list = inbox_.load(); list != idle()) {
    while (list != nullptr) {
      EnvelopePtr one(list);
      list = list->next;
    }
  }
}

ActorRef Cell::ref() const { return {id_, system_.rank_}; }

Cell::Extras& Cell::extras() {
  if (!extras_) extras_ = std::make_unique<Extras>();
  return *extras_;
}

Result<void> Cell::create_actor() {
  try {
    Result<void*> made = class_.create(arguments_);
    if (!made) return Error{made.error().code, name_ + ": " + made.error().detail};
    actor_ = *made;
  } catch (...) {
    const Error error = actor_detail::error_of(std::current_exception());
    return Error{error.code, name_ + ": " + error.detail};
  }
  return {};
}

void Cell::post() {
  if (lane_) lane_->post(*this);
  else system_.executor_.post(*this);
}

void Cell::push(EnvelopePtr envelope) {
  const bool fills = is_user(envelope->kind) && depth_.fetch_add(1) == mailbox_capacity_;
  Envelope* mine = envelope.release();
  Envelope* head = inbox_.load(std::memory_order_relaxed);
  do {
    mine->next = head == idle() ? nullptr : head;
  } while (!inbox_.compare_exchange_weak(head, mine, std::memory_order_acq_rel, std::memory_order_relaxed));  // pairs with fetch's exchange
  if (head == idle()) {
    system_.active_.fetch_add(1, std::memory_order_relaxed);
    post();
  }
  if (fills) wake(pause_generation_.load());  // invariant 4
}

void Cell::fetch() {
  Envelope* list = inbox_.exchange(nullptr, std::memory_order_acq_rel);  // pairs with push
  Envelope* ordered = nullptr;
  while (list != nullptr) {
    Envelope* next = list->next;
    list->next = ordered;
    ordered = list;
    list = next;
  }
  while (ordered != nullptr) {
    Envelope* next = ordered->next;
    if (ordered->kind == EnvelopeKind::system) {
      system_queue_.push(ordered);
    } else if (system_.options_.gate != nullptr && !stopped_.load()) {
      const std::pair key(ordered->origin, is_answer(ordered->kind));
      extras().held[key] = EnvelopePtr(ordered);
    } else if (is_answer(ordered->kind)) {
      urgent_.push(ordered);
    } else {
      user_.push(ordered);
    }
    ordered = next;
  }
}

EnvelopePtr Cell::take() {
  if (EnvelopePtr next = system_queue_.pop()) return next;
  if (stopped_.load()) {
    if (EnvelopePtr next = urgent_.pop()) return next;
    return user_.pop();
  }
  if (failed_) return nullptr;
  if (system_.options_.gate != nullptr) return take_recorded();
  if (EnvelopePtr next = urgent_.pop()) return next;
  return root_.handle || is_paused() ? nullptr : user_.pop();
}

// A replay: the message that the record has next, if it is there. Deadlines and timers fire when the record says so.
EnvelopePtr Cell::take_recorded() {
  const std::optional<DeliveryGate::Next> next = system_.options_.gate->next(id_, deliveries());
  if (!next || (root_.handle && is_user(next->kind))) return nullptr;
  Extras& more = extras();
  if (next->kind == EnvelopeKind::deadline) {
    if (!more.pending.contains(next->origin.sequence)) return nullptr;
    EnvelopePtr passed = make_envelope<Error>(ErrorCode::deadline_exceeded, "the deadline passed");
    passed->kind = EnvelopeKind::deadline;
    passed->origin = next->origin;
    passed->correlation = next->origin.sequence;
    return passed;
  }
  if (next->kind == EnvelopeKind::timer) {
    const auto at = more.timers.find(next->origin.sequence);
    if (at == more.timers.end()) return nullptr;
    EnvelopePtr timer = std::move(at->second);
    more.timers.erase(at);
    return timer;
  }
  const auto at = more.held.find(std::pair(next->origin, is_answer(next->kind)));
  if (at == more.held.end()) return nullptr;
  EnvelopePtr due = std::move(at->second);
  more.held.erase(at);
  return due;
}

void Cell::run() {
  for (unsigned done = 0; done < kBatch; ++done) {
    if (system_.stopped_.load(std::memory_order_relaxed)) return;
    if (done % kFetchEvery == 0) fetch();
    EnvelopePtr next = take();
    if (!next && inbox_.load(std::memory_order_relaxed) != nullptr) {
      fetch();
      next = take();
    }
    if (!next) {
      Envelope* nothing = nullptr;
      if (inbox_.compare_exchange_strong(nothing, idle(), std::memory_order_acq_rel)) {  // invariant 1
        system_.active_.fetch_sub(1);  // after the exchange: late, it only counts too many
        return;
      }
      continue;
    }
    process(std::move(next));
    if (pressure_.id != ActorId{}) pause();
  }
  post();
}

void Cell::process(EnvelopePtr envelope) {
  if (envelope->kind == EnvelopeKind::system) return process_system(*envelope);
  if (is_user(envelope->kind) && system_.options_.gate == nullptr) took_one();
  if (stopped_.load()) return bounce(*envelope);
  deliver(std::move(envelope));
}

void Cell::deliver(EnvelopePtr envelope) {
  if (DeliveryObserver* observer = system_.options_.observer) {
    const Delivery delivery{.actor = id_, .number = deliveries(), .envelope = envelope.get(), .actor_name = name_, .sends = sent_ - told_sent_};
    told_sent_ = sent_;
    if (Result<void> seen = observer->on_delivery(delivery); !seen) return system_.fatal(seen.error());
  }
  number_.store(deliveries() + 1, std::memory_order_relaxed);
  draws_ = 0;
  if (is_answer(envelope->kind)) deliver_reply(std::move(envelope));
  else deliver_message(std::move(envelope));
  if (DeliveryObserver* observer = system_.options_.observer) observer->on_handled(id_, delivery_number());
  settle();
}

void Cell::deliver_reply(EnvelopePtr envelope) {
  if (!extras_) return;
  const auto at = extras_->pending.find(envelope->correlation);
  if (at == extras_->pending.end()) return;  // its deadline passed before
  const std::shared_ptr<AskSlot> slot = std::move(at->second.slot);
  extras_->pending.erase(at);
  slot->answer = std::move(envelope);
  if (slot->waiter) slot->waiter.resume();
}

void Cell::deliver_message(EnvelopePtr envelope) {
  const HandlerEntry* handler = class_.find(envelope->type->id);
  if (handler == nullptr) {
    if (envelope->kind == EnvelopeKind::down) return;
    return system_.bounce(*envelope, {ErrorCode::unsupported, name_ + " (" + std::string(class_.name) + ") has no handler for " + std::string(envelope->type->name)});
  }
  current_ = std::move(envelope);
  handler->start(actor_.load(std::memory_order_relaxed), *this, *current_);
}

void Cell::begin(task_detail::Root root) {
  root_ = root;
  root_.handle.resume();
}

// After a handler ran, or a part of it.
void Cell::settle() {
  if (root_.handle && root_.handle.done()) {
    root_.handle.destroy();
    root_ = {};
  }
  if (!root_.handle) current_.reset();
  if (const bool is_suspended = root_.handle != nullptr; is_suspended != suspended_.load(std::memory_order_relaxed)) suspended_.store(is_suspended);
  if (system_.options_.observer != nullptr && show_state_ && actor_ != nullptr && !failed_) show_state();
  if (stop_reason_ && !root_.handle && !stopped_.load()) stop(*std::exchange(stop_reason_, nullptr));
}

void Cell::show_state() {
  if (class_.digest == nullptr) {
    show_state_ = false;
    return;
  }
  const ContentDigest digest = class_.digest(actor_);
  if (digest.bytes > kSmallState) {
    show_state_ = false;
    return;
  }
  if (Result<void> seen = system_.options_.observer->on_state(id_, delivery_number(), digest, class_.name, class_.to_value, actor_); !seen) system_.fatal(seen.error());
}

void Cell::send(ActorRef to, EnvelopePtr envelope) {
  envelope->origin = {id_, next_sequence()};
  envelope->sender = ref();
  system_.route(to, std::move(envelope), this);
}

void Cell::await_reply(const Envelope& ask, ActorRef to, std::shared_ptr<AskSlot> slot, Time deadline) {
  const Time limit = deadline.count() > 0 ? deadline : system_.options_.ask_deadline;
  const bool timed = system_.options_.gate == nullptr;
  const Time at = timed ? system_.executor_.now() + limit : Time{0};
  extras().pending[ask.correlation] = {std::move(slot), to, ask.type, at};
  if (timed) arm_deadline(at, limit);
}

void Cell::arm_deadline(Time at, Time delay) {
  std::set<Time>& armed = extras().deadlines_armed;
  if (!armed.empty() && *armed.begin() <= at) return;
  armed.insert(at);
  system_.executor_.after(delay, [this] {
    EnvelopePtr wake = make_envelope<Done>();
    wake->kind = EnvelopeKind::system;
    push(std::move(wake));
  });
}

// A deadline timer went off: expires what is due and arms the next.
void Cell::expire(Time now) {
  if (!extras_ || system_.options_.gate != nullptr) return;
  std::optional<Time> next;
  std::vector<std::uint64_t> due;
  for (const auto& [correlation, pending] : extras_->pending) {
    if (pending.deadline <= now) due.push_back(correlation);
    else if (!next || pending.deadline < *next) next = pending.deadline;
  }
  extras_->deadlines_armed.erase(extras_->deadlines_armed.begin(), extras_->deadlines_armed.upper_bound(now));
  if (next) arm_deadline(*next, *next - now);
  for (const std::uint64_t correlation : due) {
    EnvelopePtr passed = make_envelope<Error>(ErrorCode::deadline_exceeded, "the deadline passed");
    passed->kind = EnvelopeKind::deadline;
    passed->origin = {id_, correlation};
    passed->correlation = correlation;
    if (!stopped_.load() && !failed_) deliver(std::move(passed));
  }
}

void Cell::start_timer(EnvelopePtr envelope, Time delay) {
  envelope->kind = EnvelopeKind::timer;
  envelope->origin = {id_, next_sequence()};
  envelope->sender = ref();
  envelope->to = id_;
  if (system_.options_.gate != nullptr) {
    const std::uint64_t sequence = envelope->origin.sequence;
    extras().timers[sequence] = std::move(envelope);
    return;
  }
  auto held = std::make_shared<EnvelopePtr>(std::move(envelope));
  system_.executor_.after(delay, [this, held] { push(std::move(*held)); });
}

void Cell::reply(const Envelope& request, EnvelopePtr reply) {
  reply->kind = EnvelopeKind::reply;
  reply->correlation = request.correlation;
  send(request.sender, std::move(reply));
}

void Cell::reply_error(const Envelope& request, Error error) {
  EnvelopePtr reply = make_envelope<Error>(std::move(error));
  reply->kind = EnvelopeKind::error_reply;
  reply->correlation = request.correlation;
  send(request.sender, std::move(reply));
}

void Cell::handler_failed(const Envelope& request, Error error) {
  error.detail = name_ + ", handling " + std::string(request.type->name) + ": " + error.detail;
  if (request.kind == EnvelopeKind::ask) reply_error(request, {ErrorCode::actor_failed, error.detail});
  fail(std::move(error));
}

// Its supervisor decides what becomes of it; until then it takes nothing but system messages.
void Cell::fail(Error reason) {
  if (stopped_.load() || failed_) return;
  failed_ = true;
  if (!parent_) {
    if (system_.options_.on_failure) system_.options_.on_failure(name_, reason);
    stop_reason_ = std::make_unique<const Error>(std::move(reason));
    return;
  }
  EnvelopePtr report = make_envelope<ChildFailed>(ref(), std::move(reason));
  system_.route_system(parent_, std::move(report));
}

void Cell::process_system(Envelope& envelope) {
  const MessageType* type = envelope.type;
  if (type == &message_type<Done>()) {
    expire(system_.executor_.now());
  } else if (type == &message_type<StopActor>()) {
    if (stopped_.load()) return;
    if (root_.handle && envelope.as<StopActor>().reason.code == ErrorCode::ok) {
      stop_reason_ = std::make_unique<const Error>(envelope.as<StopActor>().reason);  // after the suspended handler
    } else {
      stop(envelope.as<StopActor>().reason);
    }
  } else if (type == &message_type<RestartActor>()) {
    restart();
  } else if (type == &message_type<ChildFailed>()) {
    child_failed(envelope.as<ChildFailed>());
  } else if (type == &message_type<MonitorActor>()) {
    if (stopped_.load()) {
      EnvelopePtr down = make_envelope<Down>(ref(), Error{ErrorCode::actor_unreachable, name_ + " has stopped"});
      down->kind = EnvelopeKind::down;
      down->origin = {id_, kFromSystem | envelope.as<MonitorActor>().sequence};
      down->sender = ref();
      system_.route(envelope.as<MonitorActor>().watcher, std::move(down), nullptr);
    } else {
      extras().watchers.push_back(envelope.as<MonitorActor>());
    }
  } else if (type == &message_type<LinkActor>()) {
    const ActorRef other = envelope.as<LinkActor>().other;
    if (stopped_.load()) system_.route_system(other, make_envelope<StopActor>(Error{ErrorCode::actor_unreachable, name_ + ", linked, has stopped"}));
    else extras().linked[other.id] = other;
  } else if (type == &message_type<PeerLost>()) {
    peer_lost(envelope.as<PeerLost>());
  }
  // A failed actor takes no more replies, so its suspended handler would never end by itself.
  if (stop_reason_ && (failed_ || !root_.handle) && !stopped_.load()) stop(*std::exchange(stop_reason_, nullptr));
}

void Cell::peer_lost(const PeerLost& lost) {
  if (!extras_ || stopped_.load()) return;
  std::vector<std::uint64_t> asks;
  for (const auto& [correlation, pending] : extras_->pending) {
    if (system_.resolve(pending.to).rank == lost.rank) asks.push_back(correlation);
  }
  for (const std::uint64_t correlation : asks) {
    const auto at = extras_->pending.find(correlation);
    if (at == extras_->pending.end()) continue;  // a handler that an earlier one resumed has stopped the actor
    EnvelopePtr answer = make_envelope<Error>(lost.reason);
    answer->kind = EnvelopeKind::error_reply;
    answer->origin = {at->second.to.id, kFromSystem | correlation};
    answer->correlation = correlation;
    if (!failed_) deliver(std::move(answer));
  }
  for (const auto& [id, other] : extras_->linked) {
    if (!lost.is_orderly && system_.resolve(other).rank == lost.rank) stop_reason_ = std::make_unique<const Error>(lost.reason);
  }
  for (auto at = extras_->watching.begin(); at != extras_->watching.end();) {
    if (system_.resolve(at->second).rank != lost.rank) {
      ++at;
      continue;
    }
    EnvelopePtr down = make_envelope<Down>(at->second, lost.reason);
    down->kind = EnvelopeKind::down;
    down->to = id_;
    down->origin = {at->second.id, kFromSystem | at->first};
    down->sender = at->second;
    at = extras_->watching.erase(at);
    depth_.fetch_add(1, std::memory_order_relaxed);
    user_.push(down.release());
  }
}

void Cell::child_failed(const ChildFailed& failed) {
  if (stopped_.load()) return;
  if (!children_) return system_.route_system(failed.child, make_envelope<StopActor>(failed.reason));
  const Supervision& policy = *children_;
  Extras& more = extras();
  const Time now = system_.executor_.now();
  std::erase_if(more.restarts, [&](Time at) { return at + policy.within < now; });
  if (more.restarts.size() >= policy.restarts_max) {
    system_.route_system(failed.child, make_envelope<StopActor>(failed.reason));
    fail({failed.reason.code, name_ + ": a child failed more than " + std::to_string(policy.restarts_max) + " times: " + failed.reason.detail});
    return;
  }
  Time delay = policy.backoff;
  for (std::size_t i = 0; i < more.restarts.size() && delay < policy.backoff_max; ++i) delay *= 2;
  if (delay > policy.backoff_max) delay = policy.backoff_max;
  more.restarts.push_back(now);
  std::vector<ActorRef> again;
  if (policy.strategy == Supervision::Strategy::one_for_all) {
    for (const auto& [id, child] : more.children) again.push_back(child);
  } else {
    again.push_back(failed.child);
  }
  system_.executor_.after(delay, [&system = system_, again] {
    for (const ActorRef child : again) system.route_system(child, make_envelope<RestartActor>());
  });
}

void Cell::drop_suspended(const Error& reason) {
  if (extras_) extras_->pending.clear();
  if (root_.handle) {
    root_.handle.destroy();
    root_ = {};
    suspended_.store(false);
    if (current_ && current_->kind == EnvelopeKind::ask) reply_error(*current_, reason);
  }
  current_.reset();
}

void Cell::restart() {
  if (stopped_.load()) return;
  drop_suspended({ErrorCode::actor_failed, name_ + " was restarted"});
  class_.destroy(actor_.exchange(nullptr));
  failed_ = false;
  if (DeliveryObserver* observer = system_.options_.observer) observer->on_restart(id_, deliveries(), {ErrorCode::ok, {}});
  if (Result<void> made = create_actor(); !made) fail(made.error());
}

void Cell::stop(Error reason) {
  stopped_.store(true);
  drop_suspended({ErrorCode::actor_unreachable, name_ + " has stopped"});
  if (actor_ != nullptr) class_.destroy(actor_.exchange(nullptr));
  if (DeliveryObserver* observer = system_.options_.observer) observer->on_stop(id_, deliveries(), reason);
  if (awaited_.exchange(false)) system_.relieve(id_);
  if (!extras_) return;
  for (const auto& [id, child] : extras_->children) system_.route_system(child, make_envelope<StopActor>(reason));
  for (const MonitorActor& watcher : extras_->watchers) {
    EnvelopePtr down = make_envelope<Down>(ref(), reason);
    down->kind = EnvelopeKind::down;
    down->origin = {id_, kFromSystem | watcher.sequence};
    down->sender = ref();
    system_.route(watcher.watcher, std::move(down), nullptr);
  }
  if (reason.code != ErrorCode::ok) {
    for (const auto& [id, other] : extras_->linked) system_.route_system(other, make_envelope<StopActor>(reason));
  }
  extras_->watchers.clear();
  extras_->timers.clear();
  for (auto& [key, held] : extras_->held) user_.push(held.release());
  extras_->held.clear();
}

void Cell::bounce(const Envelope& envelope) {
  system_.bounce(envelope, {ErrorCode::actor_unreachable, name_ + " has stopped"});
}

void Cell::begin_in_middle(std::uint64_t deliveries, std::uint64_t sent) {
  number_.store(deliveries);
  sent_ = sent;
  told_sent_ = sent;
}

ActorLook Cell::look() const {
  ActorLook look{.id = id_, .name = name_, .actor_class = &class_, .actor = actor_, .deliveries = deliveries(), .sent = sent_, .current = current_.get()};
  if (!extras_) return look;
  for (const auto& [sequence, pending] : extras_->pending) {
    look.asks.push_back({.sequence = sequence, .to = pending.to, .type = pending.type, .is_awaited = pending.slot->waiter != nullptr && pending.slot->answer == nullptr, .where = pending.slot->where});
  }
  for (const auto& [key, envelope] : extras_->held) look.mailbox.push_back(envelope.get());
  for (const auto& [sequence, envelope] : extras_->timers) look.timers.push_back(envelope.get());
  return look;
}

void Cell::add_child(ActorRef child) { extras().children[child.id] = child; }

void Cell::watch(ActorRef other, bool linked) {
  const std::uint64_t sequence = next_sequence();
  extras().watching[sequence] = other;
  if (linked) extras_->linked[other.id] = other;
  system_.route_system(other, make_envelope<MonitorActor>(ref(), sequence));
}

void Cell::stop_after_handler(Error reason) { stop_reason_ = std::make_unique<const Error>(std::move(reason)); }

// Back-pressure: a sender that met a full mailbox takes no further message until half of that mailbox is taken, its own is full, or the receiver
// may wait for it.

void Cell::took_one() {
  const std::uint32_t left = depth_.fetch_sub(1) - 1;
  if (left == mailbox_capacity_ / 2 && awaited_.exchange(false)) system_.relieve(id_);
}

bool Cell::await_room() {
  awaited_.store(true);
  return depth_.load() > mailbox_capacity_ / 2;  // else took_one has passed the mark, perhaps before it could see awaited_
}

void Cell::meet_pressure(ActorRef receiver) { pressure_ = receiver; }

void Cell::pause() {
  const ActorRef receiver = std::exchange(pressure_, ActorRef{});
  if (is_paused()) return;
  const std::uint64_t generation = pause_generation_.fetch_add(1) + 1;
  if (depth_.load() > mailbox_capacity_ || !system_.pause_for(receiver, *this, generation)) {
    std::uint64_t still = generation;
    pause_generation_.compare_exchange_strong(still, generation + 1);
    return;
  }
  watch_pause();
}

void Cell::watch_pause() {
  if (pause_watched_.exchange(true)) return;
  system_.executor_.after(kPauseLook, [this] {
    pause_watched_.store(false);
    if (system_.may_stay_paused(*this)) watch_pause();
  });
}

void Cell::wake(std::uint64_t generation) {
  if (generation % 2 == 0 || !pause_generation_.compare_exchange_strong(generation, generation + 1)) return;
  EnvelopePtr look = make_envelope<Done>();
  look->kind = EnvelopeKind::system;
  push(std::move(look));
}

}  // namespace troupe
