#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "actors/base/error.hpp"
#include "actors/base/fields.hpp"
#include "actors/base/ids.hpp"

namespace troupe::scheduler {

struct Gpu {
  std::string uuid;  ///< "GPU-8a4f…", as nvidia-smi prints it: the same whatever the order of the devices
  std::string name;
  std::uint64_t memory_bytes = 0;

  bool operator==(const Gpu&) const = default;
  TROUPE_FIELDS(uuid, name, memory_bytes)
};

/// What one process finds around it; exchanged at the start, so that every rank knows of all.
struct LocalResources {
  std::string host;
  std::vector<std::uint32_t> cores;   ///< processors this process may run on
  std::uint64_t memory_bytes = 0;     ///< of the host, or the least limit of the control groups this process is in
  std::vector<Gpu> gpus;              ///< visible to this process (CUDA_VISIBLE_DEVICES is honoured by the driver)

  TROUPE_FIELDS(host, cores, memory_bytes, gpus)
};

/// Errors: io when /proc or the driver cannot be read. A machine without the CUDA driver has no GPUs.
Result<LocalResources> find_local_resources();

struct Host {
  std::string name;
  std::uint32_t cores = 0;
  std::uint64_t memory_bytes = 0;
  std::vector<Gpu> gpus;

  TROUPE_FIELDS(name, cores, memory_bytes, gpus)
};

/// Where a rank runs. Cores and memory belong to the host and are shared by its ranks.
struct RankPlace {
  std::uint32_t host = 0;           ///< index in Inventory::hosts
  std::vector<std::uint32_t> gpus;  ///< those of the host that it sees, by index

  TROUPE_FIELDS(host, gpus)
};

/// What there is: hosts, and the ranks on them.
struct Inventory {
  std::vector<Host> hosts;
  std::vector<RankPlace> ranks;  ///< by rank

  const Host& host_of(Rank rank) const { return hosts[ranks[index(rank)].host]; }
  TROUPE_FIELDS(hosts, ranks)
};

/// Ranks that name the same host share it: its cores are all that any of them may use, its GPUs all that any of them sees.
Inventory combine(const std::vector<LocalResources>& by_rank);

/// `ranks` ranks on the host of this process, for planning without starting them.
Inventory on_this_host(const LocalResources& here, std::uint32_t ranks);

/// An inventory that is declared rather than found, to plan for machines one does not have. Format: inventory.md. Errors:
/// bad_input naming the file, the key, what it got and what is allowed; io when the file cannot be read.
Result<Inventory> read_inventory(const std::string& path);
Result<Inventory> parse_inventory_toml(std::string_view text, const std::string& file);
Result<Inventory> parse_inventory_json(std::string_view text, const std::string& file);

/// "16GiB", "512 MiB", "1.5GB" or bytes. Errors: bad_input.
Result<std::uint64_t> parse_bytes(std::string_view text);
/// "16.0 GiB"
std::string print_bytes(std::uint64_t bytes);

}  // namespace troupe::scheduler
