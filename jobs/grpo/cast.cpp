#include "jobs/grpo/cast.hpp"

#include <string>

#include "jobs/grpo/director.hpp"
#include "jobs/grpo/learner.hpp"
#include "jobs/grpo/reward.hpp"
#include "jobs/grpo/rollout.hpp"

namespace troupe::jobs::grpo {
namespace {

std::string rollout_name(std::uint32_t index) { return "rollout/" + std::to_string(index); }

/// Thousandths, as the scheduler counts; above one GPU, whole ones.
std::uint32_t thousandths(double gpus) {
  const double exact = gpus * scheduler::kWhole;
  return static_cast<std::uint32_t>(exact + 0.5);
}

std::vector<Rank> ranks_of(const scheduler::Plan& plan, const std::string& gang, std::uint32_t size) {
  std::vector<Rank> ranks;
  for (std::uint32_t member = 0; member < size; ++member) ranks.push_back(plan.rank_of(scheduler::member_name(gang, member)));
  return ranks;
}

/// Spawns what of a gang is on this rank: members first, then the address that gives them commands.
template <class Member, class Front>
Result<void> spawn_gang(System& system, const scheduler::Plan& plan, const std::string& gang, std::uint32_t size, std::uint64_t nonce) {
  scheduler::GangPlace place{.gang = gang, .group = digest64(gang + "#" + std::to_string(nonce)), .ranks = ranks_of(plan, gang, size)};
  for (std::uint32_t member = 0; member < size; ++member) {
    const std::vector<std::string>& gpus = plan.gpus_of(scheduler::member_name(gang, member));
    if (!gpus.empty()) place.gpus[member] = gpus[0];
  }
  std::vector<ActorRef> members;
  for (place.member = 0; place.member < size; ++place.member) {
    const std::string name = scheduler::member_name(gang, place.member);
    members.push_back({actor_id(name), place.ranks[place.member]});
    if (place.ranks[place.member] != system.rank()) continue;
    if (Result<ActorRef> spawned = system.spawn<Member>(name, scheduler::member_options(), place); !spawned) return spawned.error();
  }
  if (plan.rank_of(gang) != system.rank()) return {};
  if (Result<ActorRef> spawned = system.spawn<Front>(gang, members); !spawned) return spawned.error();
  return {};
}

}  // namespace

std::vector<scheduler::Request> requests(const GrpoConfig& config, std::uint64_t model_bytes) {
  using scheduler::Request;
  std::vector<Request> all;
  const std::uint32_t learners = config.learner.data_parallel * config.learner.tensor_parallel;
  const std::uint64_t shard_bytes = model_bytes / config.learner.tensor_parallel;
  all.push_back({.name = "director", .rank = Rank{0}});
  all.push_back({.name = "learner", .rank = Rank{0}});
  for (std::uint32_t i = 0; i < learners; ++i) {
    Request request{.name = scheduler::member_name("learner", i), .group = "learner members", .gpu_thousandths = thousandths(config.learner.gpus), .memory_bytes = 8 * shard_bytes, .is_gang_member = true};
    if (i == 0) request.rank = Rank{0};
    all.push_back(std::move(request));
  }
  for (std::uint32_t i = 0; i < config.rollout.actors; ++i) {
    all.push_back({.name = rollout_name(i), .rank = Rank{0}});
    for (std::uint32_t member = 0; member < config.rollout.tensor_parallel; ++member) {
      all.push_back({.name = scheduler::member_name(rollout_name(i), member), .group = "rollout members", .gpu_thousandths = thousandths(config.rollout.gpus),
                     .memory_bytes = 2 * model_bytes / config.rollout.tensor_parallel, .is_gang_member = true});
    }
  }
  for (std::uint32_t i = 0; i < config.reward.actors; ++i) all.push_back({.name = "reward/" + std::to_string(i), .group = "reward"});
  return all;
}

std::map<ActorId, Rank> directory(const scheduler::Plan& plan) {
  std::map<ActorId, Rank> where;
  for (const scheduler::Request& request : plan.requests) where[actor_id(request.name)] = plan.rank_of(request.name);
  return where;
}

Result<void> spawn(System& system, const GrpoConfig& config, const scheduler::Plan& plan, std::uint64_t nonce) {
  const std::uint32_t learners = config.learner.data_parallel * config.learner.tensor_parallel;
  Result<void> done = spawn_gang<Learner, LearnerFront>(system, plan, "learner", learners, nonce);
  for (std::uint32_t i = 0; done && i < config.rollout.actors; ++i) {
    done = spawn_gang<Rollout, RolloutFront>(system, plan, rollout_name(i), config.rollout.tensor_parallel, nonce);
  }
  for (std::uint32_t i = 0; done && i < config.reward.actors; ++i) {
    const std::string name = "reward/" + std::to_string(i);
    if (plan.rank_of(name) != system.rank()) continue;
    if (Result<ActorRef> spawned = system.spawn<Reward>(name); !spawned) return spawned.error();
  }
  if (done && plan.rank_of("director") == system.rank()) {
    if (Result<ActorRef> spawned = system.spawn<Director>("director"); !spawned) return spawned.error();
  }
  return done;
}

}  // namespace troupe::jobs::grpo
