#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "scheduler/placement.hpp"

namespace troupe::scheduler::testing {

inline constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

/// Hosts a, b, … of one kind, whose ranks see all of their host's GPUs.
inline Inventory machines(std::uint32_t hosts, std::uint32_t ranks_per_host, const Host& kind) {
  Inventory inventory;
  for (std::uint32_t i = 0; i < hosts; ++i) {
    Host host = kind;
    host.name = std::string(1, static_cast<char>('a' + i));
    for (std::uint32_t gpu = 0; gpu < host.gpus.size(); ++gpu) host.gpus[gpu].uuid = fmt::format("GPU-{}{}", host.name, gpu);
    RankPlace place{i, {}};
    for (std::uint32_t gpu = 0; gpu < host.gpus.size(); ++gpu) place.gpus.push_back(gpu);
    inventory.hosts.push_back(host);
    inventory.ranks.insert(inventory.ranks.end(), ranks_per_host, place);
  }
  return inventory;
}

inline Host host_of(std::uint32_t cores, std::uint64_t memory_bytes = 64 * kGiB, std::uint32_t gpus = 0) {
  return {.name = {}, .cores = cores, .memory_bytes = memory_bytes, .gpus = std::vector<Gpu>(gpus, Gpu{{}, "H200", 139 * kGiB})};
}

/// `count` requests "name/0", "name/1", … of one group.
inline std::vector<Request> several(std::uint32_t count, const std::string& group, Request each) {
  std::vector<Request> requests;
  for (std::uint32_t i = 0; i < count; ++i) {
    each.name = fmt::format("{}/{}", group, i);
    each.group = group;
    requests.push_back(each);
  }
  return requests;
}

inline std::vector<std::uint32_t> ranks_of(const Placement& placement) {
  std::vector<std::uint32_t> ranks;
  for (const Assignment& assignment : placement.assigned) ranks.push_back(index(assignment.rank));
  return ranks;
}

}  // namespace troupe::scheduler::testing
