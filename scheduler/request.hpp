#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "actors/base/fields.hpp"
#include "actors/base/ids.hpp"

namespace troupe::scheduler {

/// Where requests of one group go when several places fit.
enum class Strategy : std::uint8_t {
  spread,  ///< on as many hosts, then ranks, as there are
  pack,    ///< on as few hosts, then ranks, as will hold them
};

/// A thousandth of a core or of a GPU. Counted in whole thousandths, so that sums of shares are exact.
inline constexpr std::uint32_t kWhole = 1000;

/// What one actor needs. Zero cores is a share like any other: the actor runs when its host's others leave room.
struct Request {
  std::string name = {};   ///< the actor's logical name: "director", "learner/1"
  std::string group = {};  ///< actors of one kind, to spread or pack among: "rollout"
  std::uint32_t cpu_thousandths = 0;
  std::uint32_t gpu_thousandths = 0;  ///< up to kWhole: a share of one device; above: whole devices, a multiple of kWhole
  std::uint64_t memory_bytes = 0;
  std::optional<Rank> rank = {};      ///< only there
  std::string host = {};              ///< only there, when not empty
  Strategy strategy = Strategy::spread;
  bool is_gang_member = false;        ///< the members of its group are placed all or none

  TROUPE_FIELDS(name, group, cpu_thousandths, gpu_thousandths, memory_bytes, rank, host, strategy, is_gang_member)
};

}  // namespace troupe::scheduler
