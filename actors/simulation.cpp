#include "actors/simulation.hpp"

#include "actors/base/check.hpp"
#include "actors/base/philox.hpp"

namespace troupe {

class Simulation::SimulatedExecutor : public Executor {
 public:
  SimulatedExecutor(Simulation& simulation, std::uint32_t rank) : simulation_(simulation), rank_(rank) {}
  void post(Runnable& runnable) override { simulation_.runnable_.emplace_back(rank_, &runnable); }
  std::unique_ptr<Lane> make_lane() override {
    struct SameThread : Lane {
      SimulatedExecutor* executor = nullptr;
      void post(Runnable& runnable) override { executor->post(runnable); }
    };
    auto lane = std::make_unique<SameThread>();
    lane->executor = this;
    return lane;
  }
  Time now() override { return simulation_.now_; }
  void after(Time delay, std::function<void()> call) override { simulation_.at(simulation_.now_ + delay, rank_, std::move(call)); }
  void stop() override {}

 private:
  Simulation& simulation_;
  std::uint32_t rank_;
};

class Simulation::SimulatedLink : public Link {
 public:
  SimulatedLink(Simulation& simulation, std::uint32_t rank) : simulation_(simulation), rank_(rank) {}
  Rank rank() const override { return Rank{rank_}; }
  std::uint32_t size() const override { return simulation_.options_.ranks; }
  void start(LinkSink& sink) override { sink_ = &sink; }
  void stop() override { sink_ = nullptr; }
  Result<void> send(Rank to, WireEnvelope envelope) override {
    if (simulation_.lost_.contains({rank_, index(to)})) return Error{ErrorCode::peer_lost, "rank " + std::to_string(index(to)) + " is lost"};
    simulation_.transmit(rank_, index(to), std::move(envelope));
    return {};
  }
  bool is_congested(Rank to) const override {
    const auto at = simulation_.in_flight_bytes_.find({rank_, index(to)});
    return at != simulation_.in_flight_bytes_.end() && at->second > simulation_.options_.congested_bytes;
  }
  LinkSink* sink() { return sink_; }

 private:
  Simulation& simulation_;
  std::uint32_t rank_;
  LinkSink* sink_ = nullptr;
};

struct Simulation::Node {
  Node(Simulation& simulation, std::uint32_t rank) : executor(simulation, rank), link(simulation, rank) {}
  SimulatedExecutor executor;
  SimulatedLink link;
  std::unique_ptr<System> system;
};

Simulation::Simulation(std::uint64_t seed, SimulationOptions options) : seed_(seed), options_(std::move(options)) {
  for (std::uint32_t rank = 0; rank < options_.ranks; ++rank) nodes_.push_back(std::make_unique<Node>(*this, rank));
  for (const auto& node : nodes_) {
    SystemOptions system = options_.system;
    system.link = &node->link;
    node->system = std::make_unique<System>(node->executor, std::move(system));
  }
}

Simulation::~Simulation() {
  for (const auto& node : nodes_) node->system->stop();
}

System& Simulation::system(std::uint32_t rank) { return *nodes_.at(rank)->system; }

std::uint32_t Simulation::draw_below(std::uint32_t bound) {
  return uniform_below(draw({.seed = seed_, .purpose = Purpose::shuffle, .prompt = draws_++})[0], bound);
}

void Simulation::at(Time when, std::uint32_t rank, std::function<void()> call) { events_.emplace(std::pair(when, events_made_++), Event{rank, std::move(call)}); }

bool Simulation::step() {
  if (!runnable_.empty()) {
    const std::size_t chosen = draw_below(static_cast<std::uint32_t>(runnable_.size()));
    const auto [rank, runnable] = runnable_[chosen];
    runnable_.erase(runnable_.begin() + static_cast<std::ptrdiff_t>(chosen));
    if (!dead_.contains(rank)) runnable->run();
    return true;
  }
  if (events_.empty()) return false;
  auto next = events_.extract(events_.begin());
  now_ = next.key().first;
  if (!dead_.contains(next.mapped().rank)) next.mapped().call();
  return true;
}

std::uint64_t Simulation::run_until_idle(Time horizon) {
  const Time limit = now_ + horizon;
  std::uint64_t steps = 0;
  while (!runnable_.empty() || (!events_.empty() && events_.begin()->first.first <= limit)) {
    step();
    ++steps;
  }
  return steps;
}

void Simulation::run_for(Time duration) {
  const Time limit = now_ + duration;
  run_until_idle(duration);
  now_ = limit;
}

void Simulation::transmit(std::uint32_t from, std::uint32_t to, WireEnvelope envelope) {
  const Pair pair{from, to};
  if (cut_.contains(unordered_pair(from, to))) {
    held_[pair].push_back(std::move(envelope));
    return;
  }
  const std::uint64_t bytes = envelope.payload.size() + 64;
  in_flight_bytes_[pair] += bytes;
  const auto spread = static_cast<std::uint32_t>((options_.delay_max - options_.delay_min).count());
  Time arrival = now_ + options_.delay_min + Time{draw_below(spread + 1)};
  arrival = std::max(arrival, last_arrival_[pair]);
  last_arrival_[pair] = arrival;
  at(arrival, to, [this, pair, bytes, held = std::make_shared<WireEnvelope>(std::move(envelope))] {
    const bool was_congested = nodes_[pair.first]->link.is_congested(Rank{pair.second});
    in_flight_bytes_[pair] -= bytes;
    if (dead_.contains(pair.first) && lost_.contains({pair.second, pair.first})) return;
    if (LinkSink* sink = nodes_[pair.second]->link.sink()) sink->on_envelope(Rank{pair.first}, std::move(*held));
    if (was_congested && !nodes_[pair.first]->link.is_congested(Rank{pair.second}) && !dead_.contains(pair.first)) {
      if (LinkSink* sink = nodes_[pair.first]->link.sink()) sink->on_relief(Rank{pair.second});
    }
  });
}

void Simulation::lose(std::uint32_t noticed_by, std::uint32_t peer, const std::string& why) {
  if (dead_.contains(noticed_by) || !lost_.insert({noticed_by, peer}).second) return;
  if (LinkSink* sink = nodes_[noticed_by]->link.sink()) sink->on_peer_lost(Rank{peer}, {ErrorCode::peer_lost, "rank " + std::to_string(peer) + ": " + why});
}

void Simulation::leave(std::uint32_t rank) {
  dead_.insert(rank);
  for (std::uint32_t other = 0; other < options_.ranks; ++other) {
    if (other == rank) continue;
    at(std::max(now_ + options_.delay_min, last_arrival_[{rank, other}]), other, [this, other, rank] {
      if (!lost_.insert({other, rank}).second) return;
      if (LinkSink* sink = nodes_[other]->link.sink()) sink->on_peer_left(Rank{rank}, {ErrorCode::peer_lost, "rank " + std::to_string(rank) + " has left"});
    });
  }
}

void Simulation::kill(std::uint32_t rank) {
  dead_.insert(rank);
  for (std::uint32_t other = 0; other < options_.ranks; ++other) {
    if (other != rank) at(now_ + options_.lost_after, other, [this, other, rank] { lose(other, rank, "killed"); });
  }
}

void Simulation::cut(std::uint32_t one, std::uint32_t other) {
  cut_.insert(unordered_pair(one, other));
  const auto notice = [this, one, other](std::uint32_t by, std::uint32_t peer) {
    at(now_ + options_.lost_after, by, [this, one, other, by, peer] {
      if (cut_.contains(unordered_pair(one, other))) lose(by, peer, "nothing heard from it");
    });
  };
  notice(one, other);
  notice(other, one);
}

void Simulation::heal(std::uint32_t one, std::uint32_t other) {
  cut_.erase(unordered_pair(one, other));
  for (const Pair& pair : {Pair{one, other}, Pair{other, one}}) {
    for (WireEnvelope& envelope : std::exchange(held_[pair], {})) {
      if (!lost_.contains(pair)) transmit(pair.first, pair.second, std::move(envelope));
    }
  }
}

}  // namespace troupe
