#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "transport/collectives/fabric.hpp"

namespace troupe::collectives::testing {

/// Processes of one test: packets wait in memory until their rank polls.
class SimulatedNetwork {
 public:
  struct Arrival {
    Rank from;
    Packet packet;
    std::shared_ptr<std::atomic<std::uint32_t>> unsent;
  };
  void post(Rank to, Arrival arrival) {
    const std::lock_guard lock(mutex_);
    waiting_[to].push_back(std::move(arrival));
  }
  std::deque<Arrival> take(Rank to) {
    const std::lock_guard lock(mutex_);
    return std::exchange(waiting_[to], {});
  }

 private:
  std::mutex mutex_;
  std::map<Rank, std::deque<Arrival>> waiting_;
};

class SimulatedWire : public Wire {
 public:
  SimulatedWire(std::shared_ptr<SimulatedNetwork> network, Rank rank) : network_(std::move(network)), rank_(rank) {}
  Rank rank() const override { return rank_; }
  std::uint32_t ranks_on_host() const override { return 4; }
  void post(Rank to, Packet packet, std::shared_ptr<std::atomic<std::uint32_t>> unsent) override {
    network_->post(to, {rank_, std::move(packet), std::move(unsent)});
  }
  // A packet has left when its receiver took it, as with MPI's large messages.
  bool poll(const std::function<void(Rank, Packet)>& arrived) override {
    auto taken = network_->take(rank_);
    for (auto& arrival : taken) {
      arrival.unsent->fetch_sub(1);
      arrived(arrival.from, std::move(arrival.packet));
    }
    return !taken.empty();
  }

 private:
  std::shared_ptr<SimulatedNetwork> network_;
  Rank rank_;
};

/// A fabric for each rank of a layout.
class SimulatedRanks {
 public:
  explicit SimulatedRanks(std::uint32_t count) {
    auto network = std::make_shared<SimulatedNetwork>();
    for (std::uint32_t rank = 0; rank < count; ++rank) {
      fabrics_.push_back(std::make_unique<Fabric>(std::make_shared<SimulatedWire>(network, Rank{rank})));
    }
  }
  Fabric& at(Rank rank) { return *fabrics_[index(rank)]; }

 private:
  std::vector<std::unique_ptr<Fabric>> fabrics_;
};

inline std::vector<Rank> layout(std::initializer_list<std::uint32_t> ranks) {
  std::vector<Rank> out;
  for (const std::uint32_t rank : ranks) out.push_back(Rank{rank});
  return out;
}

/// Runs `body` in a thread for each member, laid over ranks as spec.ranks says.
inline void run_members(SimulatedRanks& ranks, const GroupSpec& spec, const std::function<void(Communicator&)>& body) {
  std::vector<std::thread> threads;
  for (std::uint32_t member = 0; member < spec.ranks.size(); ++member) {
    threads.emplace_back([&, member] {
      auto communicator = ranks.at(spec.ranks[member]).open(spec, member);
      if (communicator) body(**communicator);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

inline void run_members(const std::vector<Rank>& layout, const std::function<void(Communicator&)>& body) {
  SimulatedRanks ranks(4);
  run_members(ranks, GroupSpec{.id = 1, .name = "learner", .ranks = layout}, body);
}

}  // namespace troupe::collectives::testing
