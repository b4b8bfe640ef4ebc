#include "scheduler/placement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "actors/base/check.hpp"

namespace troupe::scheduler {
namespace {

constexpr std::size_t kHoldersShown = 4;
constexpr std::size_t kHostsShown = 3;

std::string print_thousandths(std::uint64_t thousandths) { return fmt::format("{:g}", static_cast<double>(thousandths) / kWhole); }

/// What is left of an inventory while requests are placed, and who has the rest.
class Ledger {
 public:
  Ledger(const Inventory& inventory, const std::vector<Request>& requests) : inventory_(inventory), requests_(requests) {
    for (const Host& host : inventory.hosts) {
      left_.push_back({.cpu_thousandths = std::uint64_t{host.cores} * kWhole, .memory_bytes = host.memory_bytes,
                       .gpu_thousandths = std::vector<std::uint32_t>(host.gpus.size(), kWhole), .held = {}});
    }
    on_rank_.resize(inventory.ranks.size());
  }

  bool fits(const Request& request, std::uint32_t rank) const {
    const Left& left = left_[inventory_.ranks[rank].host];
    return left.cpu_thousandths >= request.cpu_thousandths && left.memory_bytes >= request.memory_bytes &&
           (request.gpu_thousandths == 0 || !choose_gpus(request, rank).empty());
  }

  Assignment take(std::uint32_t at, std::uint32_t rank) {
    const Request& request = requests_[at];
    const std::uint32_t host = inventory_.ranks[rank].host;
    Left& left = left_[host];
    left.cpu_thousandths -= request.cpu_thousandths;
    left.memory_bytes -= request.memory_bytes;
    Assignment assignment{at, Rank{rank}, {}};
    for (const std::uint32_t gpu : choose_gpus(request, rank)) {
      left.gpu_thousandths[gpu] -= std::min(request.gpu_thousandths, kWhole);
      assignment.gpus.push_back(inventory_.hosts[host].gpus[gpu].uuid);
    }
    left.held.push_back(at);
    on_rank_[rank].push_back(at);
    return assignment;
  }

  // Smaller is better; the rank's number breaks ties, so that the choice is one.
  auto preference(const Request& request, std::uint32_t rank) const {
    const std::uint32_t host = inventory_.ranks[rank].host;
    const std::int64_t group_on_host = count_group(left_[host].held, request.group);
    const std::int64_t group_on_rank = count_group(on_rank_[rank], request.group);
    if (request.strategy == Strategy::spread) {
      return std::tuple(group_on_host, group_on_rank, static_cast<std::int64_t>(left_[host].held.size()),
                        static_cast<std::int64_t>(on_rank_[rank].size()), rank);
    }
    // The first of a packed group goes where most is left for the others.
    return std::tuple(-group_on_host, -group_on_rank, -free_gpu_thousandths(rank), -static_cast<std::int64_t>(left_[host].cpu_thousandths), rank);
  }

  /// "host a: cpus: want 2, 0.5 of 4 left (held by director 1, learner/0 2.5)": the first resource that is short there.
  std::string explain(const Request& request, std::uint32_t rank) const {
    const std::uint32_t host = inventory_.ranks[rank].host;
    const Left& left = left_[host];
    const Host& has = inventory_.hosts[host];
    if (request.gpu_thousandths > 0 && choose_gpus(request, rank).empty()) {
      return fmt::format("host {}: gpus: want {}, {} of the {} that rank {} sees left{}", has.name, print_thousandths(request.gpu_thousandths),
                         print_thousandths(static_cast<std::uint64_t>(free_gpu_thousandths(rank))), inventory_.ranks[rank].gpus.size(), rank,
                         holders(left, [](const Request& holder) { return std::uint64_t{holder.gpu_thousandths}; }, print_thousandths));
    }
    if (left.memory_bytes < request.memory_bytes) {
      return fmt::format("host {}: memory: want {}, {} of {} left{}", has.name, print_bytes(request.memory_bytes), print_bytes(left.memory_bytes),
                         print_bytes(has.memory_bytes), holders(left, [](const Request& holder) { return holder.memory_bytes; }, print_bytes));
    }
    return fmt::format("host {}: cpus: want {}, {} of {} left{}", has.name, print_thousandths(request.cpu_thousandths),
                       print_thousandths(left.cpu_thousandths), has.cores,
                       holders(left, [](const Request& holder) { return std::uint64_t{holder.cpu_thousandths}; }, print_thousandths));
  }

 private:
  struct Left {
    std::uint64_t cpu_thousandths;
    std::uint64_t memory_bytes;
    std::vector<std::uint32_t> gpu_thousandths;  ///< by the host's GPU
    std::vector<std::uint32_t> held;             ///< requests placed on the host
  };

  // Indices of the host's GPUs that would be given; empty when there are not enough. A share goes to the fullest device that has room.
  std::vector<std::uint32_t> choose_gpus(const Request& request, std::uint32_t rank) const {
    const auto& left = left_[inventory_.ranks[rank].host].gpu_thousandths;
    const auto& seen = inventory_.ranks[rank].gpus;
    if (request.gpu_thousandths == 0) return {};
    std::vector<std::uint32_t> chosen;
    if (request.gpu_thousandths < kWhole) {
      for (const std::uint32_t gpu : seen) {
        if (left[gpu] < request.gpu_thousandths) continue;
        if (chosen.empty()) chosen.push_back(gpu);
        if (left[gpu] < left[chosen[0]]) chosen[0] = gpu;
      }
      return chosen;
    }
    for (const std::uint32_t gpu : seen) {
      if (left[gpu] == kWhole && chosen.size() < request.gpu_thousandths / kWhole) chosen.push_back(gpu);
    }
    if (chosen.size() < request.gpu_thousandths / kWhole) chosen.clear();
    return chosen;
  }

  std::int64_t free_gpu_thousandths(std::uint32_t rank) const {
    std::int64_t left = 0;
    for (const std::uint32_t gpu : inventory_.ranks[rank].gpus) left += left_[inventory_.ranks[rank].host].gpu_thousandths[gpu];
    return left;
  }

  std::int64_t count_group(const std::vector<std::uint32_t>& held, const std::string& group) const {
    return std::ranges::count_if(held, [&](std::uint32_t at) { return requests_[at].group == group; });
  }

  template <class Amount, class Print>
  std::string holders(const Left& left, Amount amount, Print print) const {
    std::vector<std::uint32_t> largest;
    for (const std::uint32_t at : left.held) {
      if (amount(requests_[at]) > 0) largest.push_back(at);
    }
    if (largest.empty()) return "";
    std::ranges::stable_sort(largest, std::greater<>(), [&](std::uint32_t at) { return amount(requests_[at]); });
    std::string text = " (held by ";
    for (std::size_t i = 0; i < largest.size(); ++i) {
      if (i == kHoldersShown) {
        text += fmt::format(" and {} others", largest.size() - i);
        break;
      }
      text += fmt::format("{}{} {}", i > 0 ? ", " : "", requests_[largest[i]].name, print(amount(requests_[largest[i]])));
    }
    return text + ")";
  }

  const Inventory& inventory_;
  const std::vector<Request>& requests_;
  std::vector<Left> left_;                           ///< by host
  std::vector<std::vector<std::uint32_t>> on_rank_;  ///< requests placed there
};

std::vector<std::uint32_t> candidates(const Inventory& inventory, const Request& request) {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < inventory.ranks.size(); ++rank) {
    if (request.rank && index(*request.rank) != rank) continue;
    if (!request.host.empty() && inventory.host_of(Rank{rank}).name != request.host) continue;
    ranks.push_back(rank);
  }
  return ranks;
}

std::string explain(const Inventory& inventory, const Ledger& ledger, const Request& request, const std::vector<std::uint32_t>& ranks) {
  if (request.gpu_thousandths > kWhole && request.gpu_thousandths % kWhole != 0) {
    return fmt::format("{}: gpus: want a share of one or a whole number, got {}", request.name, print_thousandths(request.gpu_thousandths));
  }
  if (request.rank && index(*request.rank) >= inventory.ranks.size()) {
    return fmt::format("{}: want rank {}, got {} ranks, numbered from 0", request.name, index(*request.rank), inventory.ranks.size());
  }
  if (ranks.empty()) {
    std::vector<std::string> names;
    for (const Host& host : inventory.hosts) names.push_back(host.name);
    return fmt::format("{}: want host {}{}, got {}", request.name, request.host, request.rank ? fmt::format(" and rank {}", index(*request.rank)) : "",
                       names.empty() ? "no host" : fmt::format("{}", fmt::join(names, ", ")));
  }
  std::string text = request.name + ": ";
  std::set<std::uint32_t> hosts;
  for (const std::uint32_t rank : ranks) {
    if (!hosts.insert(inventory.ranks[rank].host).second) continue;
    if (hosts.size() > kHostsShown) continue;
    text += (hosts.size() > 1 ? "; " : "") + ledger.explain(request, rank);
  }
  if (hosts.size() > kHostsShown) text += fmt::format("; and {} more hosts", hosts.size() - kHostsShown);
  return text;
}

// Requests that may go to fewer places first, then larger ones, then earlier ones.
std::vector<std::uint32_t> order_of(const std::vector<Request>& requests) {
  std::vector<std::uint32_t> order(requests.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const auto key = [&](std::uint32_t at) {
      const Request& request = requests[at];
      return std::tuple(request.rank.has_value(), !request.host.empty(), request.gpu_thousandths, request.memory_bytes, request.cpu_thousandths);
    };
    return key(a) > key(b);
  });
  return order;
}

// One pass; requests that `refused` names already are left out.
Placement place_once(const Inventory& inventory, const std::vector<Request>& requests, const std::map<std::uint32_t, std::string>& refused) {
  Ledger ledger(inventory, requests);
  Placement placement;
  for (const std::uint32_t at : order_of(requests)) {
    if (refused.contains(at)) continue;
    const Request& request = requests[at];
    const auto ranks = candidates(inventory, request);
    const bool is_sound = request.gpu_thousandths <= kWhole || request.gpu_thousandths % kWhole == 0;
    std::optional<std::uint32_t> best;
    for (const std::uint32_t rank : ranks) {
      if (!is_sound || !ledger.fits(request, rank)) continue;
      if (!best || ledger.preference(request, rank) < ledger.preference(request, *best)) best = rank;
    }
    if (best) placement.assigned.push_back(ledger.take(at, *best));
    else placement.refused.push_back({at, explain(inventory, ledger, request, ranks)});
  }
  return placement;
}

}  // namespace

const Assignment& Placement::of(std::uint32_t request) const {
  const auto found = std::ranges::find(assigned, request, &Assignment::request);
  TROUPE_CHECK(found != assigned.end(), "only a request that was placed has an assignment");
  return *found;
}

Placement place(const Inventory& inventory, const std::vector<Request>& requests) {
  std::map<std::uint32_t, std::string> refused;
  for (;;) {
    Placement placement = place_once(inventory, requests, refused);
    // A gang that does not fit whole gives back what its members took, and the rest is placed anew without it.
    std::map<std::string, std::uint32_t> broken;
    for (const Refusal& refusal : placement.refused) {
      if (requests[refusal.request].is_gang_member) broken.emplace(requests[refusal.request].group, refusal.request);
    }
    if (broken.empty()) {
      for (const auto& [request, reason] : refused) placement.refused.push_back({request, reason});
      std::ranges::sort(placement.assigned, {}, &Assignment::request);
      std::ranges::sort(placement.refused, {}, &Refusal::request);
      return placement;
    }
    const auto& [gang, first] = *broken.begin();
    const auto why = std::ranges::find(placement.refused, first, &Refusal::request)->reason;
    for (std::uint32_t at = 0; at < requests.size(); ++at) {
      if (!requests[at].is_gang_member || requests[at].group != gang) continue;
      refused[at] = at == first ? why : fmt::format("{}: its gang {} is placed whole or not at all: {}", requests[at].name, gang, why);
    }
  }
}

std::string_view to_string(CommunicatorKind kind) { return kind == CommunicatorKind::nccl ? "nccl" : "mpi"; }

CommunicatorKind communicator_kind(const std::vector<std::string>& gpus) {
  const std::set<std::string> own(gpus.begin(), gpus.end());
  return gpus.empty() || own.contains({}) || own.size() < gpus.size() ? CommunicatorKind::mpi : CommunicatorKind::nccl;
}

CommunicatorKind communicator_kind(const std::vector<Assignment>& members) {
  std::vector<std::string> gpus;
  for (const Assignment& member : members) gpus.push_back(member.gpus.empty() ? std::string() : member.gpus[0]);
  return communicator_kind(gpus);
}

}  // namespace troupe::scheduler
