#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "actors/system.hpp"
#include "jobs/config/grpo_config.hpp"
#include "scheduler/plan.hpp"

namespace troupe::jobs::grpo {

/// The actors of a run, to be placed. Director, addresses of gangs and the learner's member 0 go to rank 0, which writes the run's folder.
std::vector<scheduler::Request> requests(const GrpoConfig& config, std::uint64_t model_bytes);

/// Where the plan puts every actor.
std::map<ActorId, Rank> directory(const scheduler::Plan& plan);

/// Spawns this rank's actors. nonce: differs between runs of the same process. Errors: bad_input; the constructors'.
Result<void> spawn(System& system, const GrpoConfig& config, const scheduler::Plan& plan, std::uint64_t nonce);

}  // namespace troupe::jobs::grpo
