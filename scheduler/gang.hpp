#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/actor.hpp"
#include "transport/collectives/communicator.hpp"

namespace troupe::scheduler {

/// A member's place in its gang: what it needs to open its communicator. An argument of its constructor, never part of a message or a state.
struct GangPlace {
  std::string gang;           ///< "learner"; its members are "learner/0", "learner/1", …
  std::uint64_t group = 0;    ///< differs between gangs, and between runs of one gang
  std::uint32_t member = 0;
  std::vector<Rank> ranks;    ///< by member
  std::vector<std::string> gpus = std::vector<std::string>(ranks.size());  ///< by member: its GPU's UUID, empty for none
  TROUPE_FIELDS(gang, group, member, ranks, gpus)

  std::uint32_t size() const { return static_cast<std::uint32_t>(ranks.size()); }
};

std::string member_name(std::string_view gang, std::uint32_t member);

/// What a member does before all else, on its own thread: its GPU, where it was placed on one, becomes the thread's current device.
/// Errors: those of make_gpu_current.
Result<void> take_place(const GangPlace& place);

/// The communicator over all members of the gang: NCCL where every member has a GPU of its own (its id goes over the other one), else memory
/// and MPI. Collective. Errors: those of Fabric::open and open_nccl_communicator.
Result<std::unique_ptr<collectives::Communicator>> open_communicator(const GangPlace& place);

/// The member cannot take part: the others' collectives return its error, rather than wait for it.
void abandon_gang(const GangPlace& place, const Error& error);

/// How an actor of the gang is spawned: on a thread of its own, since it blocks in collectives.
SpawnOptions member_options();

/// The gang's address. It gives every command to all members in the order in which it takes them, so that all members make the same
/// collective calls; the next command starts when all have answered. The reply is the members' common one.
/// Commands: message types that the members handle.
template <class... Commands>
class GangFront {
 public:
  GangFront() = default;
  explicit GangFront(std::vector<ActorRef> members) : members_(std::move(members)) {}

  /// Errors: the first member's that failed; collective_mismatch when two members answer differently.
  template <class M>
  Task<Result<reply_of<M>>> forward(Context& context, const M& command) {
    std::vector<Ask<reply_of<M>>> asks;
    for (const ActorRef member : members_) asks.push_back(context.ask<M>(member, command));
    std::vector<Result<reply_of<M>>> replies;
    for (Ask<reply_of<M>>& ask : asks) replies.push_back(co_await ask);
    // The member that failed by itself says why; the others' collectives only noticed.
    std::optional<Error> failure;
    for (const Result<reply_of<M>>& reply : replies) {
      if (reply) continue;
      const ErrorCode code = reply.error().code;
      const bool is_cause = code != ErrorCode::deadline_exceeded && code != ErrorCode::peer_lost;
      if (!failure || is_cause) failure = reply.error();
      if (is_cause) break;
    }
    if (failure) co_return *failure;
    const std::uint64_t wanted = content_digest64(*replies[0]);
    for (std::size_t i = 1; i < replies.size(); ++i) {
      if (content_digest64(*replies[i]) != wanted) {
        co_return Error{ErrorCode::collective_mismatch, std::string(context.name()) + ": members 0 and " + std::to_string(i) + " answer " +
                                                            std::string(type_name<M>()) + " differently"};
      }
    }
    co_return std::move(replies[0]);
  }

  static void handlers(Handlers<GangFront>& on) { (on.template message<&GangFront::template forward<Commands>>(), ...); }

 private:
  std::vector<ActorRef> members_;
};

}  // namespace troupe::scheduler
