#include "jobs/debug/worker.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "actors/base/monotonic.hpp"
#include "jobs/config/config.hpp"
#include "jobs/debug/describe.hpp"
#include "jobs/debug/expression.hpp"

namespace troupe::jobs::debug {
namespace {

constexpr std::uint64_t kLongHandler_us = 50'000;  ///< before such a delivery stands a snapshot

std::string name_of(const Recording& recording, ActorId actor) {
  if (actor == kOutside) return "outside";
  const std::optional<std::uint32_t> at = recording.index.find_actor(actor);
  return at ? recording.index.actors()[*at].name : fmt::format("{:016x}", static_cast<std::uint64_t>(actor));
}

std::string_view kind_name(EnvelopeKind kind) {
  constexpr std::string_view names[] = {"tell", "ask", "reply", "error reply", "timer", "deadline", "down", "system"};
  const auto at = static_cast<std::size_t>(kind);
  return at < std::size(names) ? names[at] : "unknown";
}

const Envelope* find_message(const Session& session, ActorId actor, const Origin& origin, EnvelopeKind kind) {
  const std::optional<ActorLook> look = session.system().look(actor);
  if (!look) return nullptr;
  for (const std::vector<const Envelope*>* list : {&look->mailbox, &look->timers}) {
    const auto at = std::find_if(list->begin(), list->end(), [&](const Envelope* each) { return each->origin == origin && each->kind == kind; });
    if (at != list->end()) return *at;
  }
  return nullptr;
}

Result<Value> state_of(const Session& session, ActorId actor) {
  const std::optional<ActorLook> look = session.system().look(actor);
  if (!look) return Error{ErrorCode::bad_input, "no such actor here"};
  if (look->actor == nullptr) return Error{ErrorCode::actor_unreachable, fmt::format("{} has stopped", look->name)};
  if (look->actor_class->to_value == nullptr) return Error{ErrorCode::unsupported, fmt::format("{}: {} shows no state (it has no serialize)", look->name, look->actor_class->name)};
  return look->actor_class->to_value(look->actor);
}

/// What an expression sees of one delivery; values are made when an expression first needs them.
class DeliveryScope {
 public:
  DeliveryScope(const Recording& recording, const Session& session, const record::Event& event, ActorId watched) : session_(session) {
    const record::IndexedActor& actor = recording.index.actors()[event.actor];
    scope.step = event.step;
    scope.n = event.n;
    scope.rank = index(actor.rank);
    scope.actor = actor.name;
    scope.type = recording.index.types()[event.type];
    scope.sender = name_of(recording, event.origin.sender);
    actor_ = watched == ActorId{} ? actor.id : watched;
    if (const Envelope* envelope = find_message(session, actor.id, event.origin, event.kind)) {
      envelope_ = envelope;
    }
  }
  void need(const Expression& expression) {
    if (expression.uses_message() && !message_ && envelope_ != nullptr) message_ = envelope_->type->to_value(envelope_->payload());
    if (expression.uses_state() && !state_) {
      if (Result<Value> state = state_of(session_, actor_)) state_ = std::move(*state);
    }
    scope.message = message_ ? &*message_ : nullptr;
    scope.state = state_ ? &*state_ : nullptr;
    scope.old_message = scope.message;
    scope.old_state = scope.state;
  }
  /// After the delivery: state is the new one, old(state) that of before.
  void renew() {
    if (Result<Value> state = state_of(session_, actor_)) after_ = std::move(*state);
    scope.state = after_ ? &*after_ : nullptr;
  }
  Scope scope;

 private:
  const Session& session_;
  ActorId actor_{};
  const Envelope* envelope_ = nullptr;  ///< good until the delivery
  std::optional<Value> message_, state_, after_;
};

/// A text with {EXPR} in it.
std::string fill(const std::string& text, const Scope& scope) {
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = text.find('{', at);
    const std::size_t close = open == std::string::npos ? open : text.find('}', open);
    if (close == std::string::npos) return line + text.substr(at);
    line += text.substr(at, open - at);
    Result<Expression> expression = Expression::parse(text.substr(open + 1, close - open - 1));
    Result<Value> value = expression ? expression->evaluate(scope) : Result<Value>(expression.error());
    line += value ? one_line(*value) : "<" + value.error().detail + ">";
    at = close + 1;
  }
  return line;
}

struct ParsedCheck {
  const Check* check;
  std::optional<Expression> expression;
  bool is_after = false;  ///< seen after the delivery
};

}  // namespace

void Worker::serve(const StartPoint& start) {
  std::signal(SIGINT, SIG_IGN);   // the terminal's ^C is the debugger's
  std::signal(SIGCHLD, SIG_IGN);  // copies end by themselves
  Result<std::unique_ptr<Session>> session = Session::begin(recording_, start);
  if (!session) {
    reply(session.error());
    std::_Exit(1);
  }
  session_ = std::move(*session);
  reply(Snapshot{session_->position()});
  serve_commands();
}

void Worker::serve_commands() {
  for (;;) {
    Result<Command> command = channel_.receive_value<Command>();
    if (!command) std::_Exit(0);  // nobody needs it any more
    const bool is_fork = std::holds_alternative<Fork>(*command);
    Answer answered = std::visit([this](const auto& each) { return answer(each); }, *command);
    if (!is_fork || std::holds_alternative<Error>(answered)) reply(answered);
  }
}

void Worker::reply(const Answer& answer, const Descriptor* attached) {
  if (Result<void> sent = channel_.send_value(answer, attached); !sent) std::_Exit(0);
}

bool Worker::copy_here() {
  Result<std::pair<Channel, Channel>> ends = Channel::pair();
  if (!ends) {
    reply(ends.error());
    return true;
  }
  const pid_t child = ::fork();
  if (child < 0) {
    reply(Error{ErrorCode::io, "debugger: fork: " + std::string(std::strerror(errno))});
    return true;
  }
  if (child == 0) {
    channel_ = std::move(ends->second);
    ends->first = Channel();
    return false;
  }
  const Descriptor theirs = ends->first.release();
  reply(Snapshot{session_->position() + branch_steps_}, &theirs);
  return true;
}

Answer Worker::answer(const Fork&) {
  if (!copy_here()) serve_commands();
  return Snapshot{};
}

ActorId Worker::receiver() const {
  const record::Index& index = recording_.index;
  return session_->position() < index.count() ? index.actors()[index.event(session_->position()).actor].id : ActorId{};
}

Answer Worker::answer(const GetState& command) {
  Result<Value> state = state_of(*session_, command.actor == 0 ? receiver() : ActorId{command.actor});
  if (!state) return state.error();
  return std::move(*state);
}

Answer Worker::answer(const GetMessage&) {
  if (session_->has_left_record()) {
    const std::vector<Choice> choices = session_->choices();
    if (choices.empty()) return Error{ErrorCode::bad_input, "no message waits here"};
    return choices.front().envelope->type->to_value(choices.front().envelope->payload());
  }
  if (session_->position() >= recording_.index.count()) return Error{ErrorCode::bad_input, "the record ends here: no message is delivered"};
  const record::Event event = recording_.index.event(session_->position());
  const Envelope* envelope = find_message(*session_, recording_.index.actors()[event.actor].id, event.origin, event.kind);
  if (envelope == nullptr) return Error{ErrorCode::divergence, "the message was not sent again"};
  return envelope->type->to_value(envelope->payload());
}

Answer Worker::answer(const GetReport& command) {
  const ActorId actor = command.actor == 0 ? receiver() : ActorId{command.actor};
  const std::optional<ActorLook> look = session_->system().look(actor);
  if (!look) return Error{ErrorCode::bad_input, "no such actor here"};
  ActorReport report{.name = std::string(look->name), .class_name = std::string(look->actor_class->name), .deliveries = look->deliveries, .sent = look->sent,
                     .is_stopped = look->actor == nullptr, .handling = look->current == nullptr ? "" : std::string(look->current->type->name)};
  for (const ActorLook::OpenAsk& ask : look->asks) {
    OpenAsk open{.to = name_of(recording_, ask.to.id), .type = ask.type == nullptr ? "" : std::string(ask.type->name), .is_awaited = ask.is_awaited};
    if (ask.is_awaited) open.file = ask.where.file_name(), open.line = ask.where.line();
    open.since = recording_.index.sent_at(session_->segment_index(), {actor, ask.sequence});
    report.asks.push_back(std::move(open));
  }
  for (const std::vector<const Envelope*>* list : {&look->mailbox, &look->timers}) {
    for (const Envelope* each : *list) {
      report.mailbox.push_back({.type = std::string(each->type->name), .sender = name_of(recording_, each->origin.sender), .sequence = each->origin.sequence, .kind = std::string(kind_name(each->kind)),
                                .n = recording_.index.taken_at(session_->segment_index(), each->origin, each->kind)});
    }
  }
  return report;
}

Answer Worker::answer(const GetEnvironment&) { return recording_.environment(); }

Answer Worker::answer(const Evaluate& command) {
  Result<Expression> expression = Expression::parse(command.text);
  if (!expression) return expression.error();
  record::Event event;
  const record::Index& index = recording_.index;
  if (session_->position() < index.count()) event = index.event(session_->position());
  else event.n = index.count(), event.step = index.last_step();
  DeliveryScope scope(recording_, *session_, event, ActorId{command.actor});
  scope.need(*expression);
  Result<Value> value = expression->evaluate(scope.scope);
  if (!value) return value.error();
  return std::move(*value);
}

Answer Worker::answer(const Assign& command) {
  Result<Expression> expression = Expression::parse(command.text);
  if (!expression) return expression.error();
  const ActorId actor = command.actor == 0 ? receiver() : ActorId{command.actor};
  Result<Value> state = state_of(*session_, actor);
  if (!state) return state.error();
  const ActorLook look = *session_->system().look(actor);
  if (look.actor_class->restore == nullptr) return Error{ErrorCode::unsupported, fmt::format("{}: its state cannot be set", look.name)};
  const Scope scope{.actor = std::string(look.name), .state = &*state, .old_state = &*state};
  Value changed = *state;
  if (Result<void> assigned = expression->assign(scope, changed); !assigned) return assigned.error();
  session_->leave_record();
  if (Result<void> restored = look.actor_class->restore(const_cast<void*>(look.actor), changed); !restored) return restored.error();
  return changed;
}

Answer Worker::answer(const BranchStep&) {
  const std::vector<Choice> choices = session_->choices();
  if (choices.empty()) return Ran{.n = session_->position() + branch_steps_, .reason = StopReason::end, .text = "no message waits: the branch ends here"};
  if (Result<void> done = session_->deliver(choices.front()); !done) return done.error();
  ++branch_steps_;
  return Ran{.n = session_->position() + branch_steps_, .reason = StopReason::moved};
}

Answer Worker::answer(const RunTo& command) {
  const record::Index& index = recording_.index;
  std::vector<ParsedCheck> checks;
  for (const Check& check : command.checks) {
    ParsedCheck parsed{.check = &check};
    if (!check.expression.empty()) {
      Result<Expression> expression = Expression::parse(check.expression);
      if (!expression) return expression.error();
      parsed.is_after = check.is_watch || expression->uses_old();
      parsed.expression = std::move(*expression);
    }
    checks.push_back(std::move(parsed));
  }
  Ran ran;
  const std::uint64_t start = session_->position();
  auto last_snapshot = monotonic_now();
  const std::chrono::duration<double> every(command.snapshot_every_s);
  const auto hit = [&](const ParsedCheck& parsed, const Scope& scope, std::uint64_t n, std::string text) {
    if (!parsed.check->log.empty() && !command.all_hits) {
      reply(LogLine{fill(parsed.check->log, scope)});
      return;
    }
    ran.hits.push_back({.id = parsed.check->id, .n = n, .event = scope.n, .text = std::move(text)});
  };
  const auto ended = [&](StopReason reason, std::string text = {}) {
    ran.n = session_->position();
    ran.reason = reason;
    ran.text = std::move(text);
    return Answer(std::move(ran));
  };
  while (session_->position() < command.limit) {
    if (shared_.interrupted.load(std::memory_order_relaxed)) return ended(StopReason::interrupted);
    const std::uint64_t n = session_->position();
    const record::Event event = index.event(n);
    const std::uint64_t actor = static_cast<std::uint64_t>(index.actors()[event.actor].id);
    std::vector<std::pair<ParsedCheck*, std::unique_ptr<DeliveryScope>>> after;
    for (ParsedCheck& parsed : checks) {
      const Check& check = *parsed.check;
      const std::uint64_t whose = check.watched_actor != 0 ? check.watched_actor : check.actor;
      if (whose != 0 && whose != actor) continue;
      if (check.sender != 0 && check.sender != static_cast<std::uint64_t>(event.origin.sender)) continue;
      if (check.type != 0 && check.type != event.type + 1) continue;
      auto scope = std::make_unique<DeliveryScope>(recording_, *session_, event, ActorId{check.watched_actor});
      if (parsed.expression) scope->need(*parsed.expression);
      if (parsed.is_after) {
        after.emplace_back(&parsed, std::move(scope));
        continue;
      }
      if (n == start && !command.all_hits) continue;
      if (parsed.expression) {
        Result<bool> holds = parsed.expression->is_true(scope->scope);
        if (!holds) return ended(StopReason::breakpoint, holds.error().detail);
        if (!*holds) continue;
      }
      hit(parsed, scope->scope, n, {});
    }
    if (!ran.hits.empty() && !command.all_hits) return ended(StopReason::breakpoint);
    if (command.snapshot_every_s > 0 && n != start && (event.duration_us >= kLongHandler_us || monotonic_now() - last_snapshot > every)) {
      if (!copy_here()) serve_commands();
      last_snapshot = monotonic_now();
    }
    if (Result<void> stepped = session_->step(); !stepped) return ended(StopReason::divergence, stepped.error().detail);
    shared_.position.store(session_->position(), std::memory_order_relaxed);
    for (auto& [parsed, scope] : after) {
      if (parsed->check->is_watch) {
        Result<Value> before = parsed->expression->evaluate(scope->scope);
        scope->renew();
        Result<Value> now = parsed->expression->evaluate(scope->scope);
        if (!before && !now) continue;  // a state that is not there yet
        const std::optional<Difference> difference = before && now ? first_difference(*before, *now) : Difference{};
        if (!difference) continue;
        hit(*parsed, scope->scope, session_->position(),
            fmt::format("{}: {} -> {}", parsed->check->expression, before ? one_line(*before) : "nothing", now ? one_line(*now) : "nothing"));
      } else {
        scope->renew();
        Result<bool> holds = parsed->expression->is_true(scope->scope);
        if (!holds) return ended(StopReason::breakpoint, holds.error().detail);
        if (*holds) hit(*parsed, scope->scope, session_->position(), {});
      }
    }
    if (!ran.hits.empty() && !command.all_hits) return ended(std::any_of(checks.begin(), checks.end(), [&](const ParsedCheck& each) { return each.check->id == ran.hits.front().id && each.check->is_watch; }) ? StopReason::watchpoint : StopReason::breakpoint);
  }
  return ended(StopReason::moved);
}

}  // namespace troupe::jobs::debug
