#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/actor.hpp"
#include "actors/cell.hpp"
#include "actors/link.hpp"
#include "actors/system_messages.hpp"
#include "actors/windows.hpp"

namespace troupe {

struct SystemOptions {
  Link* link = nullptr;                  ///< null: a job of one rank. Must outlive the system
  DeliveryObserver* observer = nullptr;
  DeliveryGate* gate = nullptr;          ///< a replay's order
  std::uint64_t seed = 0;                ///< of Context::random
  Time ask_deadline{600'000'000'000};    ///< of asks that name none
  std::map<ActorId, Rank> directory;     ///< where actors are that were placed beforehand
  std::function<Rank(std::string_view name, std::string_view class_name)> place;  ///< for spawn_placed; default: this rank
  std::function<void(const Error&)> on_fatal;    ///< what the system cannot go on after: a lost peer is not, a divergence is. Called once
  std::function<void(std::string_view name, const Error&)> on_failure;  ///< an actor without a supervisor failed and stopped
  std::function<void(Rank, const Error&)> on_peer_lost;
  std::function<Result<void>(std::uint64_t mark)> on_sync;   ///< a rank asked this one to make what it has recorded safe
  std::function<void(const Error&)> on_shut_down;            ///< a rank said that the job is over
};

/// The actors of one process. Thread-safe. Actors stop when it is destroyed.
class System final : private LinkSink {
 public:
  System(Executor& executor, SystemOptions options = {});
  ~System();

  Rank rank() const { return rank_; }

  /// A top-level actor on this rank; a failing one stops. Errors: bad_input when the name is taken; the constructor's.
  template <class A, class... Args>
  Result<ActorRef> spawn(std::string name, const SpawnOptions& options, const Args&... args) {
    return spawn_class(std::move(name), actor_class<A, std::decay_t<Args>...>(), encode_arguments<std::decay_t<Args>...>(args...), options, ActorRef{});
  }
  template <class A, class... Args>
  Result<ActorRef> spawn(std::string name, const Args&... args) {
    return spawn<A>(std::move(name), SpawnOptions{}, args...);
  }

  /// From outside the actors. Errors: mailbox_full (try again), actor_unreachable, peer_lost.
  template <class M, class... Args>
  Result<void> tell(ActorRef to, Args&&... args) {
    return send_outside(to, make_envelope<M>(std::forward<Args>(args)...), EnvelopeKind::tell, nullptr);
  }
  template <class M, class... Args>
  std::future<Result<reply_of<M>>> ask(ActorRef to, Args&&... args) {
    auto promise = std::make_shared<std::promise<Result<reply_of<M>>>>();
    std::future<Result<reply_of<M>>> future = promise->get_future();
    (void)message_type<reply_of<M>>();
    OutsideReply done = [promise](EnvelopePtr answer) {
      auto slot = std::make_shared<AskSlot>();
      slot->answer = std::move(answer);
      promise->set_value(Ask<reply_of<M>>(std::move(slot)).await_resume());
    };
    Result<void> sent = send_outside(to, make_envelope<M>(std::forward<Args>(args)...), EnvelopeKind::ask, std::move(done));
    if (!sent) promise->set_value(sent.error());
    return future;
  }
  bool find_local(ActorId actor) const { return find(actor) != nullptr; }
  /// An outside message of a record, with its origin as it was.
  void inject(ActorRef to, EnvelopePtr envelope, EnvelopeKind kind, Origin origin);

  /// SystemOptions::on_sync on the other ranks, all at once; returns when all have answered. Not from an actor that a rank needs for it.
  /// Errors: the first of theirs; peer_lost.
  Result<void> sync_others(std::uint64_t mark);
  /// Tells the other ranks that the job is over.
  void shut_down_others(const Error& reason);

  ActorRef ref(std::string_view name) const { return resolve(ActorRef{actor_id(name), kRankUnknown}); }
  /// No actor of this rank has anything to do. What is under way from other ranks does not count.
  bool is_idle() const { return active() == 0; }
  std::uint64_t active() const { return static_cast<std::uint64_t>(active_.load()); }  ///< its actors that run or are about to; at rest never too few
  std::uint64_t delivered() const;  ///< user deliveries of all actors of this rank

  /// The actors of this rank, in order of their names.
  struct ActorView {
    std::string_view name;
    ActorId id;
    const ActorClass* actor_class;
    const void* actor;  ///< null: stopped. To be looked into only while nothing runs; the rest may be read at any time
    std::uint64_t deliveries;
    std::uint32_t queued;
  };
  std::vector<ActorView> actors() const;

  /// For a debugger, while nothing runs: an actor of this rank from inside (nothing when it is not here), and another look at what the gate lets it take.
  std::optional<ActorLook> look(ActorId actor) const;
  void poke(ActorId actor);
  /// Before anything runs: the actor has taken so many deliveries and sent so many messages; a replay that begins in the middle.
  void begin_in_middle(ActorId actor, std::uint64_t deliveries, std::uint64_t sent);

  /// Runs nothing more, joins the threads, closes the link. Called by the destructor.
  void stop();

 private:
  friend class Cell;
  friend class Context;
  using OutsideReply = std::function<void(EnvelopePtr)>;

  void on_envelope(Rank from, WireEnvelope wire) override;
  void on_relief(Rank peer) override;
  void on_peer_lost(Rank peer, const Error& reason) override;
  void on_peer_left(Rank peer, const Error& reason) override;

  Result<ActorRef> spawn_class(std::string name, const ActorClass& actor_class, Bytes arguments, const SpawnOptions& options, ActorRef parent);
  Result<void> send_outside(ActorRef to, EnvelopePtr envelope, EnvelopeKind kind, OutsideReply done);
  /// Local or over the link. origin, sender, kind, correlation are set. `from`: the sender's cell, which is told of pressure.
  void route(ActorRef to, EnvelopePtr envelope, Cell* from);
  Result<void> send_remote(ActorRef to, const Envelope& envelope, Cell* from);
  bool say_lost(Rank peer, const Error& reason, bool is_orderly);  ///< to all actors; false: they know already
  void route_system(ActorRef to, EnvelopePtr envelope);
  void bounce(const Envelope& envelope, const Error& reason);
  void deliver_outside(EnvelopePtr envelope);
  void handle_own(Envelope& envelope);
  void fail_outside_asks(std::optional<Rank> peer, const Error& reason);  ///< nothing: of all peers
  ActorRef resolve(ActorRef ref) const;
  Cell* find(ActorId id) const;
  /// False: there is room by now. Otherwise the sender is woken once there is.
  bool pause_for(ActorRef receiver, Cell& sender, std::uint64_t generation);
  /// False when it was woken, or by this: the receiver may wait for it, or is gone.
  bool may_stay_paused(Cell& sender);
  void wake_paused(ActorId receiver);
  void relieve(ActorId receiver);  ///< half of its mailbox is free
  void arrived(Rank from, Cell& receiver);
  bool is_counted(EnvelopeKind kind, ActorId to, ActorId sender) const;  ///< in Windows
  void acknowledge(Rank to, ActorId receiver, std::uint32_t count);
  Result<void> send_system(Rank to, const Envelope& envelope);  ///< to another rank's system
  void fatal(const Error& error);
  void for_each_cell(const std::function<void(Cell&)>& call);

  Executor& executor_;
  SystemOptions options_;
  Rank rank_{};
  std::atomic<std::uint64_t> outside_sent_{0};

  mutable std::shared_mutex cells_mutex_;
  std::unordered_map<ActorId, std::unique_ptr<Cell>> cells_;  ///< guarded by cells_mutex_; entries stay until the end
  const std::uint64_t instance_;                              ///< keys the threads' lookup caches

  mutable std::mutex mutex_;
  struct OutsideAsk {
    Rank to;
    OutsideReply done;
  };
  std::map<std::uint64_t, OutsideAsk> outside_asks_;          ///< guarded by mutex_, as the rest
  struct Pause {
    ActorRef receiver;
    std::uint64_t generation;
  };
  std::map<Cell*, Pause> paused_;                             ///< by sender; those that have gone on stay until the next look or pause
  Windows windows_;
  std::map<Rank, Error> lost_;
  std::atomic<std::int64_t> active_{0};                        ///< cells posted or running
  std::atomic<bool> stopped_{false};
  std::atomic<bool> fatal_called_{false};
};

}  // namespace troupe
