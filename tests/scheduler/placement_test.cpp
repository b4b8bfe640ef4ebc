#include "scheduler/placement.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "actors/base/philox.hpp"
#include "scheduler/machines.hpp"

namespace troupe::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::host_of;
using testing::kGiB;
using testing::machines;
using testing::ranks_of;
using testing::several;

TEST(Place, SpreadsOverHostsThenRanks) {
  const auto placement = place(machines(2, 2, host_of(8)), several(4, "rollout", {.cpu_thousandths = kWhole}));
  EXPECT_THAT(ranks_of(placement), ElementsAre(0, 2, 1, 3));
}

TEST(Place, PacksUntilAHostIsFull) {
  const auto placement = place(machines(2, 1, host_of(3)), several(4, "rollout", {.cpu_thousandths = kWhole, .strategy = Strategy::pack}));
  EXPECT_THAT(ranks_of(placement), ElementsAre(0, 0, 0, 1));
}

TEST(Place, RanksOfAHostShareItsCores) {
  const auto placement = place(machines(1, 4, host_of(2)), several(3, "rollout", {.cpu_thousandths = kWhole}));
  EXPECT_EQ(placement.assigned.size(), 2U);
  ASSERT_EQ(placement.refused.size(), 1U);
  EXPECT_EQ(placement.refused[0].reason, "rollout/2: host a: cpus: want 1, 0 of 2 left (held by rollout/0 1, rollout/1 1)");
}

TEST(Place, ActorsThatAskForNoCoreFitOnAnyNumberOfRanks) {
  const auto placement = place(machines(1, 64, host_of(2)), several(64, "rollout", {}));
  EXPECT_TRUE(placement.is_complete());
  EXPECT_EQ(index(placement.of(63).rank), 63U);
}

TEST(Place, NamesTheMemoryThatIsShortAndItsHolder) {
  auto requests = several(2, "learner", {.memory_bytes = 40 * kGiB});
  const auto placement = place(machines(1, 1, host_of(8)), requests);
  ASSERT_EQ(placement.refused.size(), 1U);
  EXPECT_EQ(placement.refused[0].reason, "learner/1: host a: memory: want 40.0 GiB, 24.0 GiB of 64.0 GiB left (held by learner/0 40.0 GiB)");
}

TEST(Place, GivesWholeGpusByUuid) {
  const auto placement = place(machines(1, 1, host_of(8, 64 * kGiB, 4)), several(2, "learner", {.gpu_thousandths = 2 * kWhole}));
  EXPECT_THAT(placement.of(0).gpus, ElementsAre("GPU-a0", "GPU-a1"));
  EXPECT_THAT(placement.of(1).gpus, ElementsAre("GPU-a2", "GPU-a3"));
}

TEST(Place, SharesOfAGpuFillOneDeviceBeforeTheNext) {
  const auto placement = place(machines(1, 1, host_of(8, 64 * kGiB, 2)), several(5, "rollout", {.gpu_thousandths = 400}));
  EXPECT_THAT(placement.of(0).gpus, ElementsAre("GPU-a0"));
  EXPECT_THAT(placement.of(1).gpus, ElementsAre("GPU-a0"));
  EXPECT_THAT(placement.of(2).gpus, ElementsAre("GPU-a1"));
  ASSERT_EQ(placement.refused.size(), 1U);
  EXPECT_THAT(placement.refused[0].reason, AllOf(HasSubstr("gpus: want 0.4, 0.4 of the 2 that rank 0 sees left"), HasSubstr("held by rollout/0 0.4")));
}

TEST(Place, ARankGetsOnlyGpusThatItSees) {
  Inventory inventory = machines(1, 2, host_of(8, 64 * kGiB, 2));
  inventory.ranks[0].gpus = {1};
  inventory.ranks[1].gpus = {0};
  const auto placement = place(inventory, {{.name = "first", .gpu_thousandths = kWhole, .rank = Rank{0}}, {.name = "second", .gpu_thousandths = kWhole, .rank = Rank{1}}});
  EXPECT_THAT(placement.of(0).gpus, ElementsAre("GPU-a1"));
  EXPECT_THAT(placement.of(1).gpus, ElementsAre("GPU-a0"));
}

TEST(Place, HonoursHostAndRank) {
  const auto placement = place(machines(2, 2, host_of(8)), {{.name = "x", .host = "b"}, {.name = "y", .rank = Rank{1}}});
  EXPECT_THAT(ranks_of(placement), ElementsAre(2, 1));
}

TEST(Place, RefusesPlacesThatDoNotExist) {
  const auto placement = place(machines(2, 1, host_of(8)), {{.name = "x", .host = "z"}, {.name = "y", .rank = Rank{7}}, {.name = "w", .gpu_thousandths = 1500}});
  ASSERT_EQ(placement.refused.size(), 3U);
  EXPECT_EQ(placement.refused[0].reason, "x: want host z, got a, b");
  EXPECT_EQ(placement.refused[1].reason, "y: want rank 7, got 2 ranks, numbered from 0");
  EXPECT_EQ(placement.refused[2].reason, "w: gpus: want a share of one or a whole number, got 1.5");
}

TEST(Place, AGangIsPlacedWholeOrNotAtAll) {
  auto requests = several(4, "learner", {.cpu_thousandths = 2 * kWhole, .is_gang_member = true});
  requests.push_back({.name = "director", .cpu_thousandths = 3 * kWhole});
  const auto placement = place(machines(1, 1, host_of(7)), requests);
  EXPECT_EQ(placement.refused.size(), 4U);
  EXPECT_THAT(placement.refused[0].reason, AllOf(HasSubstr("learner/0: its gang learner is placed whole or not at all: learner/"), HasSubstr("cpus: want 2, 0 of 7 left")));
  EXPECT_EQ(placement.of(4).rank, Rank{0});  // takes what the gang gave back
}

TEST(Place, WhatMayGoToOnePlaceOnlyGoesFirst) {
  const auto placement = place(machines(1, 1, host_of(1)), {{.name = "anywhere", .cpu_thousandths = kWhole}, {.name = "here", .cpu_thousandths = kWhole, .rank = Rank{0}}});
  ASSERT_EQ(placement.refused.size(), 1U);
  EXPECT_EQ(placement.refused[0].request, 0U);
}

TEST(CommunicatorKind, IsNcclWhenEveryMemberHasItsOwnGpu) {
  const auto kind = [](std::uint32_t members, std::uint32_t gpu_thousandths, std::uint32_t gpus) {
    const auto placement = place(machines(2, 2, host_of(8, 64 * kGiB, gpus)), several(members, "learner", {.gpu_thousandths = gpu_thousandths, .is_gang_member = true}));
    EXPECT_TRUE(placement.is_complete());
    return communicator_kind(placement.assigned);
  };
  EXPECT_EQ(kind(4, kWhole, 2), CommunicatorKind::nccl);
  EXPECT_EQ(kind(4, 500, 1), CommunicatorKind::mpi);   // two members on each device
  EXPECT_EQ(kind(2, 500, 1), CommunicatorKind::nccl);  // spread: a device each
  EXPECT_EQ(kind(4, 0, 2), CommunicatorKind::mpi);
}

// Random inventories and requests from a seed.
class Random {
 public:
  explicit Random(std::uint64_t seed) : seed_(seed) {}
  std::uint32_t below(std::uint32_t bound) { return uniform_below(draw({.seed = seed_, .purpose = Purpose::data, .prompt = at_++, .sample = 0, .position = 0})[0], bound); }

 private:
  std::uint64_t seed_;
  std::uint64_t at_ = 0;
};

Inventory random_inventory(Random& random) {
  Inventory inventory;
  const std::uint32_t hosts = random.below(4) + 1;
  for (std::uint32_t i = 0; i < hosts; ++i) {
    Host host = host_of(random.below(16), random.below(64) * kGiB, random.below(5));
    host.name = fmt::format("host{}", i);
    for (std::uint32_t gpu = 0; gpu < host.gpus.size(); ++gpu) host.gpus[gpu].uuid = fmt::format("GPU-{}-{}", i, gpu);
    const std::uint32_t ranks = random.below(4);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      RankPlace place{i, {}};
      for (std::uint32_t gpu = 0; gpu < host.gpus.size(); ++gpu) {
        if (random.below(3) > 0) place.gpus.push_back(gpu);
      }
      inventory.ranks.push_back(place);
    }
    inventory.hosts.push_back(host);
  }
  return inventory;
}

std::vector<Request> random_requests(Random& random) {
  std::vector<Request> requests;
  const std::uint32_t groups = random.below(6) + 1;
  for (std::uint32_t group = 0; group < groups; ++group) {
    Request each;
    each.cpu_thousandths = random.below(4) * 700;
    each.gpu_thousandths = std::vector<std::uint32_t>{0, 0, 250, 400, 1000, 2000, 1300}[random.below(7)];
    each.memory_bytes = random.below(12) * kGiB;
    each.strategy = random.below(2) == 0 ? Strategy::spread : Strategy::pack;
    each.is_gang_member = random.below(3) == 0;
    if (random.below(5) == 0) each.rank = Rank{random.below(12)};
    if (random.below(6) == 0) each.host = fmt::format("host{}", random.below(5));
    const auto more = several(random.below(5) + 1, fmt::format("group{}", group), each);
    requests.insert(requests.end(), more.begin(), more.end());
  }
  return requests;
}

struct Totals {
  std::uint64_t cpu_thousandths = 0;
  std::uint64_t memory_bytes = 0;
};

// Adds up what was given out, from the assignments alone.
void expect_nothing_over_committed(const Inventory& inventory, const std::vector<Request>& requests, const Placement& placement) {
  std::map<std::string, Totals> hosts;
  std::map<std::string, std::uint32_t> gpus;
  for (const Assignment& assignment : placement.assigned) {
    const Request& request = requests[assignment.request];
    ASSERT_LT(index(assignment.rank), inventory.ranks.size());
    const Host& host = inventory.host_of(assignment.rank);
    hosts[host.name].cpu_thousandths += request.cpu_thousandths;
    hosts[host.name].memory_bytes += request.memory_bytes;
    EXPECT_LE(hosts[host.name].cpu_thousandths, std::uint64_t{host.cores} * kWhole);
    EXPECT_LE(hosts[host.name].memory_bytes, host.memory_bytes);
    EXPECT_EQ(assignment.gpus.size(), (request.gpu_thousandths + kWhole - 1) / kWhole);
    for (const std::string& uuid : assignment.gpus) {
      gpus[uuid] += std::min(request.gpu_thousandths, kWhole);
      EXPECT_LE(gpus[uuid], kWhole);
      const auto& seen = inventory.ranks[index(assignment.rank)].gpus;
      EXPECT_TRUE(std::ranges::any_of(seen, [&](std::uint32_t gpu) { return host.gpus[gpu].uuid == uuid; }));
    }
    if (request.rank) { EXPECT_EQ(*request.rank, assignment.rank); }
    if (!request.host.empty()) { EXPECT_EQ(request.host, host.name); }
  }
}

void expect_each_placed_or_refused(const std::vector<Request>& requests, const Placement& placement) {
  std::map<std::uint32_t, int> seen;
  std::map<std::string, std::set<bool>> gangs;
  for (const Assignment& assignment : placement.assigned) ++seen[assignment.request];
  for (const Refusal& refusal : placement.refused) {
    ++seen[refusal.request];
    EXPECT_THAT(refusal.reason, HasSubstr(requests[refusal.request].name + ": "));
    EXPECT_THAT(refusal.reason, HasSubstr("want"));
    if (requests[refusal.request].is_gang_member) gangs[requests[refusal.request].group].insert(false);
  }
  for (const Assignment& assignment : placement.assigned) {
    if (requests[assignment.request].is_gang_member) gangs[requests[assignment.request].group].insert(true);
  }
  EXPECT_EQ(seen.size(), requests.size());
  for (const auto& [request, times] : seen) EXPECT_EQ(times, 1);
  for (const auto& [gang, outcomes] : gangs) EXPECT_EQ(outcomes.size(), 1U) << gang;
}

TEST(Place, NeverOverCommitsAndAnswersEveryRequest) {
  std::size_t placed = 0;
  std::size_t refused = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const Inventory inventory = random_inventory(random);
    const auto requests = random_requests(random);
    const Placement placement = place(inventory, requests);
    expect_nothing_over_committed(inventory, requests, placement);
    expect_each_placed_or_refused(requests, placement);
    placed += placement.assigned.size();
    refused += placement.refused.size();
    if (HasFailure()) return;
  }
  // The cases are worth trying only when both happen often.
  EXPECT_GT(placed, 5000U);
  EXPECT_GT(refused, 5000U);
}

TEST(Place, IsAFunctionOfItsArguments) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const Inventory inventory = random_inventory(random);
    const auto requests = random_requests(random);
    const Placement once = place(inventory, requests);
    const Placement again = place(inventory, requests);
    EXPECT_EQ(ranks_of(once), ranks_of(again));
  }
}

TEST(Place, RefusesOnlyWhatDoesNotFit) {
  // Alone, a request that is refused beside nothing else has truly no room.
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    const Inventory inventory = random_inventory(random);
    for (Request request : random_requests(random)) {
      request.is_gang_member = false;
      const bool is_placed = place(inventory, {request}).is_complete();
      bool has_room = false;
      for (std::uint32_t rank = 0; rank < inventory.ranks.size(); ++rank) {
        const Host& host = inventory.host_of(Rank{rank});
        const bool is_allowed = (!request.rank || index(*request.rank) == rank) && (request.host.empty() || request.host == host.name) &&
                                (request.gpu_thousandths <= kWhole || request.gpu_thousandths % kWhole == 0);
        has_room = has_room || (is_allowed && host.cores * kWhole >= request.cpu_thousandths && host.memory_bytes >= request.memory_bytes &&
                                inventory.ranks[rank].gpus.size() * kWhole >= request.gpu_thousandths);
      }
      EXPECT_EQ(is_placed, has_room) << seed << ' ' << request.name;
    }
  }
}

}  // namespace
}  // namespace troupe::scheduler
