#include "scheduler/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <map>

#include "actors/base/check.hpp"

namespace troupe::scheduler {
namespace {

std::string print_share(std::uint32_t thousandths) { return thousandths == 0 ? "-" : fmt::format("{:g}", static_cast<double>(thousandths) / kWhole); }

std::uint32_t request_named(const Plan& plan, std::string_view actor) {
  const auto found = std::ranges::find(plan.requests, actor, &Request::name);
  TROUPE_CHECK(found != plan.requests.end(), "only actors of the plan are asked for");
  return static_cast<std::uint32_t>(found - plan.requests.begin());
}

std::vector<std::string> gang_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const Request& request : plan.requests) {
    if (request.is_gang_member && std::ranges::find(names, request.group) == names.end()) names.push_back(request.group);
  }
  return names;
}

struct Used {
  std::uint64_t cpu_thousandths = 0;
  std::uint64_t memory_bytes = 0;
  std::map<std::string, std::uint32_t> gpu_thousandths;
};

std::vector<Used> use_by_host(const Plan& plan) {
  std::vector<Used> used(plan.inventory.hosts.size());
  for (const Assignment& assignment : plan.placement.assigned) {
    const Request& request = plan.requests[assignment.request];
    Used& host = used[plan.inventory.ranks[index(assignment.rank)].host];
    host.cpu_thousandths += request.cpu_thousandths;
    host.memory_bytes += request.memory_bytes;
    for (const std::string& gpu : assignment.gpus) host.gpu_thousandths[gpu] += std::min(request.gpu_thousandths, kWhole);
  }
  return used;
}

using Row = std::vector<std::string>;

std::string align(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows[0].size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

Rank Plan::rank_of(std::string_view actor) const { return placement.of(request_named(*this, actor)).rank; }

const std::vector<std::string>& Plan::gpus_of(std::string_view actor) const { return placement.of(request_named(*this, actor)).gpus; }

std::vector<Assignment> Plan::members_of(std::string_view gang) const {
  std::vector<Assignment> members;
  for (const Assignment& assignment : placement.assigned) {
    const Request& request = requests[assignment.request];
    if (request.is_gang_member && request.group == gang) members.push_back(assignment);
  }
  return members;
}

Plan make_plan_with_refusals(Inventory inventory, std::vector<Request> requests) {
  Placement placement = place(inventory, requests);
  return {std::move(inventory), std::move(requests), std::move(placement)};
}

Result<Plan> make_plan(Inventory inventory, std::vector<Request> requests) {
  std::map<std::string_view, int> names;
  for (const Request& request : requests) {
    if (++names[request.name] > 1) return Error{ErrorCode::bad_input, fmt::format("plan: want one request for each actor, got two for {}", request.name)};
  }
  Plan plan = make_plan_with_refusals(std::move(inventory), std::move(requests));
  if (plan.placement.is_complete()) return plan;
  std::vector<std::string> reasons;
  for (const Refusal& refusal : plan.placement.refused) reasons.push_back(refusal.reason);
  return Error{ErrorCode::resource_short, fmt::format("{}", fmt::join(reasons, "\n"))};
}

std::string print_table(const Plan& plan) {
  std::vector<Row> actors = {{"ACTOR", "RANK", "HOST", "CPUS", "MEMORY", "GPUS"}};
  for (const Assignment& assignment : plan.placement.assigned) {
    const Request& request = plan.requests[assignment.request];
    std::string gpus = assignment.gpus.empty() ? "-" : fmt::format("{}", fmt::join(assignment.gpus, ","));
    if (request.gpu_thousandths > 0 && request.gpu_thousandths < kWhole) gpus += fmt::format(" ({})", print_share(request.gpu_thousandths));
    actors.push_back({request.name, fmt::format("{}", index(assignment.rank)), plan.inventory.host_of(assignment.rank).name,
                      print_share(request.cpu_thousandths), request.memory_bytes == 0 ? "-" : print_bytes(request.memory_bytes), gpus});
  }
  std::string text = align(actors);

  for (const std::string& gang : gang_names(plan)) {
    const auto members = plan.members_of(gang);
    if (!members.empty()) text += fmt::format("\ngang {}: {} members, communicator {}", gang, members.size(), to_string(communicator_kind(members)));
  }
  if (!gang_names(plan).empty()) text += "\n";

  std::vector<Row> hosts = {{"HOST", "RANKS", "CPUS USED", "MEMORY USED", "GPUS USED"}};
  const auto used = use_by_host(plan);
  for (std::uint32_t i = 0; i < plan.inventory.hosts.size(); ++i) {
    const Host& host = plan.inventory.hosts[i];
    std::vector<std::uint32_t> ranks;
    for (std::uint32_t rank = 0; rank < plan.inventory.ranks.size(); ++rank) {
      if (plan.inventory.ranks[rank].host == i) ranks.push_back(rank);
    }
    std::uint64_t gpu_thousandths = 0;
    for (const auto& [uuid, thousandths] : used[i].gpu_thousandths) gpu_thousandths += thousandths;
    hosts.push_back({host.name, fmt::format("{}", fmt::join(ranks, ",")),
                     fmt::format("{:g} of {}", static_cast<double>(used[i].cpu_thousandths) / kWhole, host.cores),
                     fmt::format("{} of {}", print_bytes(used[i].memory_bytes), print_bytes(host.memory_bytes)),
                     fmt::format("{:g} of {}", static_cast<double>(gpu_thousandths) / kWhole, host.gpus.size())});
  }
  text += "\n" + align(hosts);

  for (const Refusal& refusal : plan.placement.refused) text += "\nno place: " + refusal.reason;
  if (!plan.placement.is_complete()) text += "\n";
  return text;
}

std::string print_json(const Plan& plan) {
  namespace json = boost::json;
  const auto used = use_by_host(plan);
  json::array hosts;
  for (std::uint32_t i = 0; i < plan.inventory.hosts.size(); ++i) {
    const Host& host = plan.inventory.hosts[i];
    json::array ranks;
    for (std::uint32_t rank = 0; rank < plan.inventory.ranks.size(); ++rank) {
      if (plan.inventory.ranks[rank].host == i) ranks.push_back(rank);
    }
    json::array gpus;
    for (const Gpu& gpu : host.gpus) {
      const auto at = used[i].gpu_thousandths.find(gpu.uuid);
      const std::uint32_t thousandths = at == used[i].gpu_thousandths.end() ? 0 : at->second;
      gpus.push_back({{"uuid", gpu.uuid}, {"name", gpu.name}, {"memory_bytes", gpu.memory_bytes}, {"used", static_cast<double>(thousandths) / kWhole}});
    }
    hosts.push_back({{"name", host.name},
                     {"ranks", std::move(ranks)},
                     {"cpus", host.cores},
                     {"cpus_used", static_cast<double>(used[i].cpu_thousandths) / kWhole},
                     {"memory_bytes", host.memory_bytes},
                     {"memory_bytes_used", used[i].memory_bytes},
                     {"gpus", std::move(gpus)}});
  }
  json::array actors;
  for (const Assignment& assignment : plan.placement.assigned) {
    const Request& request = plan.requests[assignment.request];
    json::array gpus(assignment.gpus.begin(), assignment.gpus.end());
    actors.push_back({{"name", request.name},
                      {"rank", index(assignment.rank)},
                      {"host", plan.inventory.host_of(assignment.rank).name},
                      {"cpus", static_cast<double>(request.cpu_thousandths) / kWhole},
                      {"memory_bytes", request.memory_bytes},
                      {"gpus_share", static_cast<double>(request.gpu_thousandths) / kWhole},
                      {"gpus", std::move(gpus)}});
  }
  json::array gangs;
  for (const std::string& gang : gang_names(plan)) {
    const auto members = plan.members_of(gang);
    if (!members.empty()) gangs.push_back({{"name", gang}, {"members", members.size()}, {"communicator", json::string_view(to_string(communicator_kind(members)))}});
  }
  json::array refused;
  for (const Refusal& refusal : plan.placement.refused) refused.push_back({{"name", plan.requests[refusal.request].name}, {"reason", refusal.reason}});
  return json::serialize(json::object{{"hosts", std::move(hosts)}, {"actors", std::move(actors)}, {"gangs", std::move(gangs)}, {"refused", std::move(refused)}});
}

}  // namespace troupe::scheduler
