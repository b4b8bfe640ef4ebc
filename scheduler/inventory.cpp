#include "scheduler/inventory.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <set>

#include "scheduler/gpu.hpp"

namespace troupe::scheduler {
namespace {

Result<std::vector<std::uint32_t>> find_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return Error{ErrorCode::io, "sched_getaffinity: refused; want the processors of this process"};
  std::vector<std::uint32_t> cores;
  for (std::uint32_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::optional<std::uint64_t> read_number(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::uint64_t number = 0;
  return in >> number ? std::optional(number) : std::nullopt;
}

// The control groups' limits apply from this process's group up to the root; "max" reads as no number.
std::uint64_t least_control_group_limit(std::uint64_t otherwise) {
  std::uint64_t least = otherwise;
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && controllers != "memory") continue;
    const std::filesystem::path root = controllers.empty() ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    const char* file = controllers.empty() ? "memory.max" : "memory.limit_in_bytes";
    for (std::filesystem::path group = line.substr(second + 1);; group = group.parent_path()) {
      if (const auto limit = read_number(root / group.relative_path() / file)) least = std::min(least, *limit);
      if (group == group.parent_path()) break;
    }
  }
  return least;
}

Result<std::uint64_t> find_memory_bytes() {
  std::ifstream in("/proc/meminfo");
  std::string key;
  std::uint64_t kib = 0;
  while (in >> key >> kib) {
    if (key == "MemTotal:") return least_control_group_limit(kib * 1024);
    in.ignore(256, '\n');
  }
  return Error{ErrorCode::io, "/proc/meminfo: want MemTotal, got none"};
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

struct Unit {
  std::string_view name;
  double bytes;
};
constexpr std::array<Unit, 9> kUnits = {{{"", 1},
                                         {"B", 1},
                                         {"KiB", 1024.0},
                                         {"MiB", 1048576.0},
                                         {"GiB", 1073741824.0},
                                         {"TiB", 1099511627776.0},
                                         {"MB", 1e6},
                                         {"GB", 1e9},
                                         {"TB", 1e12}}};

}  // namespace

Result<LocalResources> find_local_resources() {
  auto cores = find_cores();
  if (!cores) return cores.error();
  const auto memory_bytes = find_memory_bytes();
  if (!memory_bytes) return memory_bytes.error();
  auto gpus = find_gpus();
  if (!gpus) return gpus.error();
  return LocalResources{host_name(), std::move(*cores), *memory_bytes, std::move(*gpus)};
}

Inventory combine(const std::vector<LocalResources>& by_rank) {
  Inventory inventory;
  std::map<std::string, std::uint32_t> hosts;
  std::map<std::uint32_t, std::set<std::uint32_t>> cores;
  for (const LocalResources& local : by_rank) {
    const auto [at, is_new] = hosts.emplace(local.host, static_cast<std::uint32_t>(hosts.size()));
    if (is_new) inventory.hosts.push_back({.name = local.host, .cores = 0, .memory_bytes = 0, .gpus = {}});
    Host& host = inventory.hosts[at->second];
    cores[at->second].insert(local.cores.begin(), local.cores.end());
    host.cores = static_cast<std::uint32_t>(cores[at->second].size());
    host.memory_bytes = std::max(host.memory_bytes, local.memory_bytes);
    RankPlace& place = inventory.ranks.emplace_back(RankPlace{at->second, {}});
    for (const Gpu& gpu : local.gpus) {
      auto known = std::ranges::find(host.gpus, gpu.uuid, &Gpu::uuid);
      if (known == host.gpus.end()) known = host.gpus.insert(host.gpus.end(), gpu);
      place.gpus.push_back(static_cast<std::uint32_t>(known - host.gpus.begin()));
    }
  }
  return inventory;
}

Inventory on_this_host(const LocalResources& here, std::uint32_t ranks) { return combine(std::vector<LocalResources>(ranks, here)); }

Result<std::uint64_t> parse_bytes(std::string_view text) {
  const auto refuse = [&] {
    return Error{ErrorCode::bad_input, fmt::format("size: want bytes, or a number with KiB, MiB, GiB, TiB, MB, GB or TB, got \"{}\"", text)};
  };
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{} || !(number >= 0)) return refuse();
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const Unit& known : kUnits) {
    if (unit != known.name) continue;
    const double bytes = number * known.bytes;
    if (bytes >= 1.8e19) return refuse();
    return static_cast<std::uint64_t>(bytes);
  }
  return refuse();
}

std::string print_bytes(std::uint64_t bytes) {
  for (std::size_t i = 5; i >= 2; --i) {
    if (static_cast<double>(bytes) >= kUnits[i].bytes) return fmt::format("{:.1f} {}", static_cast<double>(bytes) / kUnits[i].bytes, kUnits[i].name);
  }
  return fmt::format("{} B", bytes);
}

}  // namespace troupe::scheduler
