#pragma once

#include <coroutine>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>

#include "actors/actor_class.hpp"
#include "actors/delivery.hpp"
#include "actors/supervision.hpp"

namespace troupe {

class Cell;
template <class A>
class Handlers;

/// The reply that a message's type names: `struct Add { using Reply = int; … };` or Done.
template <class M>
struct ReplyOf {
  using Type = Done;
};
template <class M>
  requires requires { typename M::Reply; }
struct ReplyOf<M> {
  using Type = typename M::Reply;
};
template <class M>
using reply_of = typename ReplyOf<M>::Type;

/// Where an ask's answer lands.
struct AskSlot {
  EnvelopePtr answer;
  std::coroutine_handle<> waiter;
  std::source_location where{};  ///< the co_await at which the waiter stands; line 0: not awaited yet
};

/// An ask on its way. It was sent when it was made, so several can be under way: make them, then co_await each. Await it in the handler
/// that made it, once.
template <class R>
class [[nodiscard]] Ask {
 public:
  explicit Ask(std::shared_ptr<AskSlot> slot) : slot_(std::move(slot)) {}
  bool await_ready() const { return slot_->answer != nullptr; }
  void await_suspend(std::coroutine_handle<> waiter, std::source_location where = std::source_location::current()) {
    slot_->waiter = waiter;
    slot_->where = where;
  }
  /// Errors: those of the receiver's handler; actor_unreachable, actor_failed, peer_lost, deadline_exceeded.
  Result<R> await_resume() {
    Envelope& answer = *slot_->answer;
    if (answer.kind == EnvelopeKind::reply && answer.type == &message_type<R>()) return std::move(answer.as<R>());
    if (answer.kind == EnvelopeKind::error_reply || answer.kind == EnvelopeKind::deadline) return std::move(answer.as<Error>());
    return Error{ErrorCode::actor_failed, "reply: want " + std::string(type_name<R>()) + ", got " + std::string(answer.type->name)};
  }

 private:
  std::shared_ptr<AskSlot> slot_;
};

/// What a handler may do. One for each actor; only its handlers may use it, on the thread that runs them.
class Context {
 public:
  explicit Context(Cell& cell) : cell_(cell) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  ActorRef self() const;
  std::string_view name() const;
  ActorRef ref(std::string_view logical_name) const;  ///< of any actor of the job, there or not

  /// Sends M{args…}. A receiver that is not there leaves Undeliverable to a sender that handles it.
  template <class M, class... Args>
  void tell(ActorRef to, Args&&... args) {
    send(to, make_envelope<M>(std::forward<Args>(args)...));
  }

  /// Sends M{args…} and gives its reply: `Result<R> r = co_await context.ask<M>(to, args…)`. Its deadline is the system's, or the one given.
  template <class M, class... Args>
  Ask<reply_of<M>> ask(ActorRef to, Args&&... args) {
    return ask_within<M>(Time{0}, to, std::forward<Args>(args)...);
  }
  template <class M, class... Args>
  Ask<reply_of<M>> ask_within(Time deadline, ActorRef to, Args&&... args) {
    (void)message_type<reply_of<M>>();
    return Ask<reply_of<M>>(send_ask(to, make_envelope<M>(std::forward<Args>(args)...), deadline));
  }
  /// Forwards a copy of a message whose type this actor does not know; the reply comes as it is.
  std::shared_ptr<AskSlot> send_ask(ActorRef to, EnvelopePtr message, Time deadline = Time{0});

  /// M{args…} to itself after a delay.
  template <class M, class... Args>
  void after(Time delay, Args&&... args) {
    start_timer(make_envelope<M>(std::forward<Args>(args)...), delay);
  }

  Time now();              ///< since the run's start; recorded
  std::uint64_t random();  ///< from the system's seed, the actor, its delivery and the draw's index: the same in a replay

  /// A child on this rank. Errors: bad_input when the name is taken; the constructor's.
  template <class A, class... Args>
  Result<ActorRef> spawn(std::string name, const SpawnOptions& options, const Args&... args);
  template <class A, class... Args>
  Result<ActorRef> spawn(std::string name, const Args&... args) {
    return spawn<A>(std::move(name), SpawnOptions{}, args...);
  }
  /// A child on another rank: `Result<ActorRef> child = co_await context.spawn_on<A>(rank, "name", options, args…)`.
  template <class A, class... Args>
  Ask<ActorRef> spawn_on(Rank rank, std::string name, const SpawnOptions& options, const Args&... args);
  /// On the rank that the system's placement function chooses.
  template <class A, class... Args>
  Ask<ActorRef> spawn_placed(std::string name, const SpawnOptions& options, const Args&... args);

  void stop();                ///< after this handler
  void stop(ActorRef other);  ///< a child, say; after the handler that it runs
  void monitor(ActorRef other);  ///< a Down comes when it stops, at once when it is not there
  void link(ActorRef other);     ///< both ways: when one fails, the other fails too

  /// Puts a digest into the record, checked by a replay.
  template <class T>
  void note(std::string_view what, const T& value) {
    note_digest(what, content_digest(value));
  }
  void note_digest(std::string_view what, const ContentDigest& digest);
  /// A training step begins with this delivery: what it causes belongs to the step.
  void begin_step(std::uint64_t step);

 private:
  void send(ActorRef to, EnvelopePtr envelope);
  void start_timer(EnvelopePtr envelope, Time delay);
  Result<ActorRef> spawn_class(std::string name, const ActorClass& actor_class, Bytes arguments, const SpawnOptions& options);
  std::shared_ptr<AskSlot> spawn_class_on(Rank rank, std::string name, const ActorClass& actor_class, Bytes arguments, const SpawnOptions& options);
  Rank place(std::string_view name, const ActorClass& actor_class) const;

  Cell& cell_;
};

}  // namespace troupe
