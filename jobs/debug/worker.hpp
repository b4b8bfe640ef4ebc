#pragma once

#include <memory>

#include "jobs/debug/channel.hpp"
#include "jobs/debug/protocol.hpp"
#include "jobs/debug/session.hpp"

namespace troupe::jobs::debug {

/// A process that re-executes. It stands at a position and does what comes through its channel, until that closes. Every copy of it is one, so
/// one that waits is a snapshot.
class Worker {
 public:
  Worker(const Recording& recording, Shared& shared, Channel channel) : recording_(recording), shared_(shared), channel_(std::move(channel)) {}

  /// Begins at the point, answers with a Snapshot of it (or an Error), and serves.
  [[noreturn]] void serve(const StartPoint& start);

 private:
  [[noreturn]] void serve_commands();
  Answer answer(const GetState& command);
  Answer answer(const GetMessage& command);
  Answer answer(const GetReport& command);
  Answer answer(const GetEnvironment& command);
  Answer answer(const Evaluate& command);
  Answer answer(const Assign& command);
  Answer answer(const BranchStep& command);
  Answer answer(const Fork& command);
  Answer answer(const RunTo& command);
  void reply(const Answer& answer, const Descriptor* attached = nullptr);
  /// False in the copy, which then serves.
  bool copy_here();
  ActorId receiver() const;  ///< of the delivery at the position

  const Recording& recording_;
  Shared& shared_;
  Channel channel_;
  std::unique_ptr<Session> session_;
  std::uint64_t branch_steps_ = 0;
};

}  // namespace troupe::jobs::debug
