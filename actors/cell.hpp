#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/actor_class.hpp"
#include "actors/actor_look.hpp"
#include "actors/context.hpp"
#include "actors/delivery.hpp"
#include "actors/executor.hpp"
#include "actors/supervision.hpp"
#include "actors/system_messages.hpp"
#include "actors/task.hpp"

namespace troupe {

class System;

/// A first-in first-out list of envelopes through their `next`.
class EnvelopeQueue {
 public:
  EnvelopeQueue() = default;
  EnvelopeQueue(const EnvelopeQueue&) = delete;
  EnvelopeQueue& operator=(const EnvelopeQueue&) = delete;
  ~EnvelopeQueue() {
    while (pop()) {
    }
  }
  bool empty() const { return head_ == nullptr; }
  void push(Envelope* envelope) {
    envelope->next = nullptr;
    (head_ == nullptr ? head_ : tail_->next) = envelope;
    tail_ = envelope;
  }
  EnvelopePtr pop() {
    Envelope* first = head_;
    if (first != nullptr) head_ = first->next;
    return EnvelopePtr(first);
  }

 private:
  Envelope* head_ = nullptr;
  Envelope* tail_ = nullptr;
};

/// An actor's mailbox and life. Lives as long as its system; a stopped one is empty and answers with errors.
///
/// Invariants:
/// 1. inbox_ is kIdle exactly when the cell is neither posted nor running; the push that replaces kIdle posts it. So one thread runs it.
/// 2. All members but inbox_ and the atomics are touched by the thread that runs the cell alone.
/// 3. A handler that is suspended keeps later user messages waiting, and so does a pause; replies, deadlines and system messages pass.
/// 4. A full cell is not paused: the push that fills it ends its pause, and pause() looks at depth_ after it has begun. So of actors that wait for
///    room in each other's mailboxes one always goes on.
class Cell final : public Runnable {
 public:
  Cell(System& system, ActorId id, std::string name, const ActorClass& actor_class, Bytes arguments, const SpawnOptions& options, ActorRef parent);
  ~Cell();

  /// Any thread.
  void push(EnvelopePtr envelope);
  bool is_full() const { return depth_.load(std::memory_order_relaxed) > mailbox_capacity_; }
  bool is_stopped() const { return stopped_.load(); }
  std::uint32_t depth() const { return depth_.load(); }
  void run() override;
  Result<void> create_actor();  ///< before the first push, and at restarts

  /// Back-pressure. await_room says whether a sender has to wait, and makes the cell call System::relieve once there is room.
  bool await_room();
  /// Its handler waits for somebody, or for a thread of its own: no room may come before those have gone on that wait for room here.
  bool may_wait() const { return suspended_.load() || lane_ != nullptr; }
  std::uint64_t pause_generation() const { return pause_generation_.load(); }
  void wake(std::uint64_t generation);      ///< of the pause; nothing when it is over
  void meet_pressure(ActorRef receiver);    ///< the running handler sent to a full mailbox

  ActorId id() const { return id_; }
  ActorRef ref() const;
  const std::string& name() const { return name_; }
  System& system() { return system_; }
  Context& context() { return context_; }
  const ActorClass& actor_class() const { return class_; }
  ActorRef parent() const { return parent_; }
  const void* actor() const { return actor_.load(std::memory_order_relaxed); }

  /// For the handler that runs.
  std::uint64_t next_sequence() { return ++sent_; }
  std::uint64_t delivery_number() const { return deliveries() - 1; }
  std::uint64_t next_draw() { return draws_++; }
  void send(ActorRef to, EnvelopePtr envelope);  ///< fills origin and sender
  void await_reply(const Envelope& ask, ActorRef to, std::shared_ptr<AskSlot> slot, Time deadline);
  void start_timer(EnvelopePtr envelope, Time delay);
  void reply(const Envelope& request, EnvelopePtr reply);
  void reply_error(const Envelope& request, Error error);
  void handler_failed(const Envelope& request, Error error);
  void begin(task_detail::Root root);
  void add_child(ActorRef child);
  void watch(ActorRef other, bool linked);
  void stop_after_handler(Error reason);

  ActorLook look() const;  ///< while nothing runs
  void begin_in_middle(std::uint64_t deliveries, std::uint64_t sent);

  std::uint64_t deliveries() const { return number_.load(std::memory_order_relaxed); }  ///< any thread

 private:
  struct Pending {
    std::shared_ptr<AskSlot> slot;
    ActorRef to;
    const MessageType* type = nullptr;
    Time deadline{};
  };
  struct Extras {
    std::map<std::uint64_t, Pending> pending;        ///< asks by correlation
    std::set<Time> deadlines_armed;                  ///< when timers go off; a new one only when none goes off by its time
    std::map<std::uint64_t, EnvelopePtr> timers;     ///< in a replay: until the record says that they fired
    std::map<std::pair<Origin, bool>, EnvelopePtr> held;  ///< in a replay: arrived, not yet due; bool: a reply
    std::map<ActorId, ActorRef> children;
    std::vector<Time> restarts;
    std::vector<MonitorActor> watchers;
    std::map<std::uint64_t, ActorRef> watching;      ///< by sequence
    std::map<ActorId, ActorRef> linked;
  };
  Extras& extras();

  void fetch();
  EnvelopePtr take();
  EnvelopePtr take_recorded();
  void process(EnvelopePtr envelope);
  void process_system(Envelope& envelope);
  void deliver(EnvelopePtr envelope);
  void deliver_reply(EnvelopePtr envelope);
  void deliver_message(EnvelopePtr envelope);
  void settle();
  void show_state();
  void bounce(const Envelope& envelope);
  void fail(Error reason);
  void stop(Error reason);
  void child_failed(const ChildFailed& failed);
  void restart();
  void peer_lost(const PeerLost& lost);
  void drop_suspended(const Error& reason);
  void arm_deadline(Time at, Time delay);
  void expire(Time now);
  void took_one();
  void pause();
  bool is_paused() const { return pause_generation_.load(std::memory_order_relaxed) % 2 == 1; }
  void watch_pause();
  void post();

  static Envelope* idle() { return reinterpret_cast<Envelope*>(std::uintptr_t{1}); }

  System& system_;
  const ActorClass& class_;
  ActorId id_;
  std::string name_;
  Bytes arguments_;
  std::unique_ptr<const Supervision> children_;  ///< null: a child that fails stops
  ActorRef parent_;
  Context context_;
  std::atomic<void*> actor_{nullptr};  ///< written by the thread that runs the cell
  std::unique_ptr<Lane> lane_;
  std::unique_ptr<Extras> extras_;

  std::atomic<Envelope*> inbox_{idle()};
  std::atomic<std::uint32_t> depth_{0};
  std::atomic<bool> stopped_{false};
  std::atomic<std::uint64_t> pause_generation_{0};  ///< odd: paused
  std::atomic<std::uint64_t> number_{0};            ///< deliveries; written by the thread that runs the cell
  std::atomic<bool> awaited_{false};                ///< somebody waits for room
  std::atomic<bool> suspended_{false};              ///< its handler is; written by the thread that runs the cell
  std::atomic<bool> pause_watched_{false};          ///< a timer looks at its pause

  EnvelopeQueue system_queue_, urgent_, user_;
  EnvelopePtr current_;           ///< of the handler that runs or is suspended
  task_detail::Root root_{};      ///< of the suspended handler
  std::uint64_t sent_ = 0;
  std::uint64_t told_sent_ = 0;   ///< at the last delivery
  std::uint64_t draws_ = 0;       ///< in this delivery
  bool failed_ = false;           ///< waits for its supervisor
  bool show_state_ = true;        ///< its state is small
  std::unique_ptr<const Error> stop_reason_;  ///< stops after the handler
  ActorRef pressure_;             ///< a receiver whose mailbox was full
  const std::uint32_t mailbox_capacity_;
};

}  // namespace troupe
