#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "actors/executor.hpp"
#include "actors/link.hpp"
#include "actors/system.hpp"

namespace troupe {

struct SimulationOptions {
  std::uint32_t ranks = 1;
  Time delay_min{10'000};                  ///< of a message between ranks
  Time delay_max{1'000'000};               ///< messages of different pairs overtake each other, those of one pair do not
  Time lost_after{5'000'000'000};          ///< how long a dead or cut-off peer goes unnoticed
  std::uint64_t congested_bytes = 1 << 20; ///< on their way to a rank, above which senders pause
  SystemOptions system;                    ///< of every rank; link is set here
};

/// Several ranks in one thread over a simulated network with virtual time. What runs next, and how long messages take, is drawn from the
/// seed alone: a seed that fails fails again. For tests, users' own among them.
class Simulation {
 public:
  explicit Simulation(std::uint64_t seed, SimulationOptions options = {});
  ~Simulation();

  System& system(std::uint32_t rank = 0);
  Time now() const { return now_; }

  /// Runs one thing: an actor's turn or, when no actor has anything to do, what comes next in time. False when there is nothing.
  bool step();
  /// Until nothing is left but timers further away than `horizon` from the start of the call. Returns the number of steps.
  std::uint64_t run_until_idle(Time horizon = Time{3'600'000'000'000});
  void run_for(Time duration);

  void leave(std::uint32_t rank);                       ///< in good order: what it sent arrives, and then its goodbye
  void kill(std::uint32_t rank);                        ///< at once and silently; the others notice after lost_after
  void cut(std::uint32_t one, std::uint32_t other);     ///< messages wait; past lost_after both take the other for lost
  void heal(std::uint32_t one, std::uint32_t other);

 private:
  class SimulatedExecutor;
  class SimulatedLink;
  struct Node;
  struct Event {
    std::uint32_t rank;
    std::function<void()> call;
  };
  using Pair = std::pair<std::uint32_t, std::uint32_t>;

  std::uint32_t draw_below(std::uint32_t bound);
  void at(Time when, std::uint32_t rank, std::function<void()> call);
  void transmit(std::uint32_t from, std::uint32_t to, WireEnvelope envelope);
  void lose(std::uint32_t at, std::uint32_t peer, const std::string& why);
  static Pair unordered_pair(std::uint32_t a, std::uint32_t b) { return a < b ? Pair{a, b} : Pair{b, a}; }

  std::uint64_t seed_;
  std::uint64_t draws_ = 0;
  SimulationOptions options_;
  Time now_{0};
  std::uint64_t events_made_ = 0;
  std::map<std::pair<Time, std::uint64_t>, Event> events_;
  std::vector<std::pair<std::uint32_t, Runnable*>> runnable_;
  std::map<Pair, Time> last_arrival_;
  std::map<Pair, std::uint64_t> in_flight_bytes_;
  std::map<Pair, std::vector<WireEnvelope>> held_;   ///< of cut pairs, by direction
  std::set<Pair> cut_;
  std::set<Pair> lost_;                              ///< (who noticed, whom)
  std::set<std::uint32_t> dead_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace troupe
