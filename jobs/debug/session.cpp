#include "jobs/debug/session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "jobs/grpo/cast.hpp"
#include "jobs/grpo/stage.hpp"

namespace troupe::jobs::debug {

/// Lets an actor take the one message that its session chose.
class Session::Gate : public DeliveryGate {
 public:
  struct Turn {
    std::uint64_t number = 0;
    Next next;
  };
  std::optional<Next> next(ActorId actor, std::uint64_t number) override {
    const auto at = turns.find(actor);
    return at == turns.end() || at->second.number != number ? std::nullopt : std::optional(at->second.next);
  }
  std::map<ActorId, Turn> turns;  ///< changed only while nothing runs
};

/// The record's checker until the session leaves the record; then nothing is checked.
class Session::Observer : public DeliveryObserver {
 public:
  Observer(record::ReplayChecker& checker, const bool& has_left) : checker_(checker), has_left_(has_left) {}
  void on_spawn(const Spawned& spawned) override {
    if (!has_left_) checker_.on_spawn(spawned);
  }
  void on_stop(ActorId actor, std::uint64_t number, const Error& reason) override {
    if (!has_left_) checker_.on_stop(actor, number, reason);
  }
  void on_restart(ActorId actor, std::uint64_t number, const Error& reason) override {
    if (!has_left_) checker_.on_restart(actor, number, reason);
  }
  Result<void> on_begin_step(ActorId actor, std::uint64_t number, std::uint64_t step) override {
    return has_left_ ? Result<void>{} : checker_.on_begin_step(actor, number, step);
  }
  void on_handled(ActorId, std::uint64_t) override {}
  Result<void> on_delivery(const Delivery& delivery) override { return has_left_ ? Result<void>{} : checker_.on_delivery(delivery); }
  Result<Time> on_clock_read(ActorId actor, std::uint64_t number, Time real) override {
    if (has_left_) return last_;
    Result<Time> time = checker_.on_clock_read(actor, number, real);
    if (time) last_ = *time;
    return time;
  }
  Result<void> on_note(ActorId actor, std::uint64_t number, std::string_view what, const ContentDigest& digest) override {
    return has_left_ ? Result<void>{} : checker_.on_note(actor, number, what, digest);
  }
  Result<void> on_state(ActorId actor, std::uint64_t number, const ContentDigest& digest, std::string_view type, Value (*to_value)(const void*), const void* state) override {
    return has_left_ ? Result<void>{} : checker_.on_state(actor, number, digest, type, to_value, state);
  }

 private:
  record::ReplayChecker& checker_;
  const bool& has_left_;
  Time last_{0};
};

std::vector<StartPoint> start_points(const Recording& recording) {
  std::vector<StartPoint> points;
  const auto segments = recording.index.segments();
  for (std::uint32_t i = 0; i < segments.size(); ++i) {
    points.push_back({.n = segments[i].first, .segment = i});
    for (const record::CheckpointEntry& checkpoint : recording.history.manifest.checkpoints) {
      if (checkpoint.step <= segments[i].start_step) continue;
      const std::optional<std::uint64_t> n = recording.index.first_of_step(checkpoint.step + 1);
      if (n && *n > segments[i].first && *n < segments[i].last) points.push_back({.n = *n, .segment = i, .checkpoint_step = checkpoint.step});
    }
  }
  std::sort(points.begin(), points.end(), [](const StartPoint& a, const StartPoint& b) { return a.n < b.n; });
  return points;
}

Session::Session(const Recording& recording) : recording_(recording) {}
Session::~Session() = default;

Result<std::unique_ptr<Session>> Session::begin(const Recording& recording, const StartPoint& start) {
  std::unique_ptr<Session> session(new Session(recording));
  if (Result<void> begun = session->begin_at(start); !begun) return begun.error();
  return session;
}

Result<void> Session::begin_at(const StartPoint& start) {
  n_ = start.n;
  segment_ = start.segment;
  const record::Segment& segment = recording_.history.line[segment_];
  system_.reset();
  if (Result<void> installed = grpo::install_segment(recording_.config, *recording_.world, recording_.run, segment, start.checkpoint_step, 1); !installed) return installed.error();
  gate_ = std::make_unique<Gate>();
  checker_ = std::make_unique<record::ReplayChecker>(segment);
  observer_ = std::make_unique<Observer>(*checker_, left_record_);
  stepper_ = std::make_unique<Stepper>();
  SystemOptions options{.observer = observer_.get(), .gate = gate_.get(), .seed = recording_.config.common.seed, .directory = grpo::directory(recording_.plan)};
  options.on_fatal = [this](const Error& error) { divergence_ = error; };
  system_ = std::make_unique<System>(*stepper_, std::move(options));
  if (Result<void> spawned = grpo::spawn(*system_, recording_.config, recording_.plan, ++begun_); !spawned) return spawned.error();
  if (!start.checkpoint_step) {
    if (Result<void> injected = grpo::inject_outside(*system_, segment); !injected) return injected.error();
  } else {
    const record::Index& index = recording_.index;
    const auto taken = [&](ActorId actor) {
      const std::optional<std::uint32_t> at = index.find_actor(actor);
      return at ? index.place_of(*at, n_) : record::ActorPlace{};
    };
    for (const System::ActorView& actor : system_->actors()) {
      const record::ActorPlace place = taken(actor.id);
      system_->begin_in_middle(actor.id, place.deliveries, place.sent);
      checker_->begin_in_middle(actor.id, place.deliveries);
    }
    if (Result<void> injected = grpo::inject_outside(*system_, segment, [&](ActorId actor) { return taken(actor).deliveries; }); !injected) return injected.error();
    grpo::inject_step(*system_, index.event(n_).origin, *start.checkpoint_step + 1);
  }
  stepper_->run();
  return {};
}

Result<void> Session::run(const std::vector<std::pair<ActorId, DeliveryGate::Next>>& allowed) {
  gate_->turns.clear();
  std::vector<std::uint64_t> before;
  for (const auto& [actor, next] : allowed) {
    const std::optional<ActorLook> look = system_->look(actor);
    if (!look) return Error{ErrorCode::divergence, fmt::format("actor {}: recorded, got no such actor", segment().name_of(actor))};
    before.push_back(look->deliveries);
    gate_->turns[actor] = {look->deliveries, next};
  }
  for (const auto& [actor, next] : allowed) system_->poke(actor);
  stepper_->run();
  gate_->turns.clear();
  if (divergence_) return *divergence_;
  for (std::size_t i = 0; i < allowed.size(); ++i) {
    if (system_->look(allowed[i].first)->deliveries == before[i]) {
      divergence_ = Error{ErrorCode::divergence, missing(allowed[i].first, before[i])};
      return *divergence_;
    }
  }
  return {};
}

std::string Session::missing(ActorId actor, std::uint64_t number) const {
  const record::ActorHistory* history = segment().find(actor);
  if (history == nullptr || number >= history->deliveries.size()) return fmt::format("actor {}, message {}: it was not sent", segment().name_of(actor), number);
  const record::RecordedDelivery& recorded = history->deliveries[number];
  return fmt::format("actor {}, message {}, {} from {}: recorded, and not sent again", segment().name_of(actor), number, segment().names[recorded.type], segment().name_of(recorded.origin.sender));
}

Result<void> Session::step() {
  if (divergence_) return *divergence_;
  const record::Index& index = recording_.index;
  if (n_ >= index.count()) return Error{ErrorCode::bad_input, "the record ends here"};
  const record::Event event = index.event(n_);
  if (event.segment != segment_) {
    if (Result<void> begun = begin_at({.n = n_, .segment = event.segment}); !begun) return begun;
  }
  std::vector<std::pair<ActorId, DeliveryGate::Next>> allowed;
  for (const auto& [actor, number] : index.members(n_)) {
    const ActorId id = index.actors()[actor].id;
    const record::ActorHistory* history = segment().find(id);
    if (history == nullptr || number >= history->deliveries.size()) return Error{ErrorCode::corrupt, fmt::format("position {}: the index names a delivery that the record does not have", n_)};
    allowed.push_back({id, {.origin = history->deliveries[number].origin, .kind = history->deliveries[number].kind}});
  }
  if (Result<void> done = run(allowed); !done) return done;
  ++n_;
  return {};
}

void Session::leave_record() {
  left_record_ = true;
  divergence_.reset();
}

std::vector<Choice> Session::choices() const {
  std::vector<Choice> all;
  for (const System::ActorView& view : system_->actors()) {
    const ActorLook look = *system_->look(view.id);
    if (look.actor == nullptr) continue;
    std::set<std::pair<ActorId, bool>> seen;  // of a sender the earliest; the mailbox ascends by origin
    for (const Envelope* envelope : look.mailbox) {
      const bool is_answer = envelope->kind == EnvelopeKind::reply || envelope->kind == EnvelopeKind::error_reply;
      if (!is_answer && look.current != nullptr) continue;
      if (is_answer && std::none_of(look.asks.begin(), look.asks.end(), [&](const ActorLook::OpenAsk& ask) { return ask.sequence == envelope->correlation; })) continue;
      if (!seen.insert({envelope->origin.sender, is_answer}).second) continue;
      all.push_back({.actor = view.id, .message = {.origin = envelope->origin, .kind = envelope->kind}, .envelope = envelope});
    }
    if (look.current != nullptr) continue;
    for (const Envelope* timer : look.timers) all.push_back({.actor = view.id, .message = {.origin = timer->origin, .kind = EnvelopeKind::timer}, .envelope = timer});
  }
  return all;
}

// A gang's command goes to all members at once: they meet in collectives.
Result<void> Session::deliver(const Choice& choice) {
  std::vector<std::pair<ActorId, DeliveryGate::Next>> allowed{{choice.actor, choice.message}};
  const record::Index& index = recording_.index;
  const std::optional<std::uint32_t> at = index.find_actor(choice.actor);
  const std::string gang = at ? index.actors()[*at].gang : std::string();
  if (!gang.empty() && choice.message.origin.sender == actor_id(gang)) {
    for (const record::IndexedActor& member : index.actors()) {
      if (member.gang != gang || member.id == choice.actor) continue;
      const std::optional<ActorLook> look = system_->look(member.id);
      if (!look) continue;
      const auto first = std::find_if(look->mailbox.begin(), look->mailbox.end(), [&](const Envelope* each) { return each->origin.sender == choice.message.origin.sender; });
      if (first != look->mailbox.end()) allowed.push_back({member.id, {.origin = (*first)->origin, .kind = (*first)->kind}});
    }
  }
  return run(allowed);
}

}  // namespace troupe::jobs::debug
