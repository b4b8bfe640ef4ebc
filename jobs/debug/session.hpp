#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/record/replay.hpp"
#include "actors/stepper.hpp"
#include "actors/system.hpp"
#include "jobs/debug/recording.hpp"

namespace troupe::jobs::debug {

/// Where a re-execution may begin: a segment's start, or between two training steps at a checkpoint.
struct StartPoint {
  std::uint64_t n = 0;
  std::uint32_t segment = 0;
  std::optional<std::uint64_t> checkpoint_step;  ///< nothing: the segment's start
};
/// Ascending by n. The checkpoints of a run that lie within its line are among them.
std::vector<StartPoint> start_points(const Recording& recording);

/// A message that could be delivered next where no record says which.
struct Choice {
  ActorId actor{};
  DeliveryGate::Next message;
  const Envelope* envelope = nullptr;  ///< null: a deadline
};

/// Re-executes a recording in this process, one event at a time, in the order of positions, and checks it against the record; or, once it
/// `leaves_record`, whatever its caller chooses. Between two calls no thread exists but the caller's. One session at a time in a process.
class Session {
 public:
  /// Stands at start.n. The recording outlives it. Errors: those of the model's and the checkpoint's files.
  static Result<std::unique_ptr<Session>> begin(const Recording& recording, const StartPoint& start);
  ~Session();

  std::uint64_t position() const { return n_; }
  std::uint32_t segment_index() const { return segment_; }
  /// Executes the event at the position. Errors: divergence, after which nothing goes on; bad_input at the end.
  Result<void> step();

  /// From here on deliveries are not the record's. Clock reads give the last time seen.
  void leave_record();
  bool has_left_record() const { return left_record_; }
  /// What may be delivered, in order of the actors' names, then of origins. Of each pair of actors only the earliest message.
  std::vector<Choice> choices() const;
  Result<void> deliver(const Choice& choice);

  System& system() { return *system_; }
  const System& system() const { return *system_; }
  const record::Segment& segment() const { return recording_.history.line[segment_]; }

 private:
  class Gate;
  class Observer;
  explicit Session(const Recording& recording);
  Result<void> begin_at(const StartPoint& start);
  Result<void> run(const std::vector<std::pair<ActorId, DeliveryGate::Next>>& allowed);
  std::string missing(ActorId actor, std::uint64_t number) const;

  const Recording& recording_;
  std::uint64_t n_ = 0;
  std::uint32_t segment_ = 0;
  bool left_record_ = false;
  std::uint64_t begun_ = 0;                    ///< segments, so that gangs' groups differ
  std::optional<Error> divergence_;
  std::unique_ptr<Gate> gate_;
  std::unique_ptr<record::ReplayChecker> checker_;
  std::unique_ptr<Observer> observer_;
  std::unique_ptr<Stepper> stepper_;
  std::unique_ptr<System> system_;
};

}  // namespace troupe::jobs::debug
