#include "scheduler/inventory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/gpu.hpp"

namespace troupe::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::string_view kToml = R"(
[[host]]
name = "node"
count = 2
cores = 64
memory = "256GiB"
ranks = 4

[[host.gpu]]
count = 2
name = "H200"
memory = "139 GiB"

[[host]]
name = "head"
cores = 8
memory = 1024
)";

TEST(Inventory, ReadsDeclaredMachines) {
  const auto inventory = parse_inventory_toml(kToml, "x.toml").value();
  ASSERT_EQ(inventory.hosts.size(), 3U);
  EXPECT_EQ(inventory.hosts[0].name, "node1");
  EXPECT_EQ(inventory.hosts[1].name, "node2");
  EXPECT_EQ(inventory.hosts[1].memory_bytes, std::uint64_t{256} << 30);
  EXPECT_EQ(inventory.hosts[1].gpus[1].uuid, "GPU-node2-1");
  EXPECT_EQ(inventory.ranks.size(), 9U);
  EXPECT_THAT(inventory.ranks[7].gpus, ElementsAre(0, 1));
  EXPECT_EQ(inventory.host_of(Rank{8}).name, "head");
}

TEST(Inventory, ReadsTheSameFromJson) {
  const auto inventory = parse_inventory_json(R"({"host": [{"name": "n", "cores": 2, "memory": "1GiB", "gpu": [{"uuid": "GPU-7"}]}]})", "x.json").value();
  EXPECT_EQ(inventory.hosts[0].gpus[0].uuid, "GPU-7");
  EXPECT_EQ(inventory.ranks.size(), 1U);
}

TEST(Inventory, NamesTheKeyThatIsWrong) {
  const auto problem = [](const char* toml) { return parse_inventory_toml(toml, "x.toml").error().detail; };
  EXPECT_EQ(problem("[[host]]\nname = 'a'\nmemory = 1"), "x.toml: host[0].cores: want this key, got none");
  EXPECT_EQ(problem("[[host]]\nname = 'a'\ncores = -1\nmemory = 1"), "x.toml: host[0].cores: want a whole number from 0 to 65536, got -1");
  EXPECT_EQ(problem("[[host]]\nname = 'a'\ncores = 1\nmemory = '3 parsecs'"), "x.toml: host[0].memory: want bytes or a size such as \"64GiB\", got \"3 parsecs\"");
  EXPECT_THAT(problem("[[host]]\nname = 'a'\ncores = 1\nmemory = 1\ncore = 3"), HasSubstr("host[0].core: an unknown key; allowed are "));
  EXPECT_THAT(problem("[[host]]\nname = 'a'\ncores = 1\nmemory = 1\n[[host.gpu]]\nuid = 'x'"), HasSubstr("host[0].gpu[0].uid: an unknown key"));
  EXPECT_THAT(problem("host = 3"), HasSubstr("host: want a list of tables, got 3"));
  EXPECT_THAT(problem(""), HasSubstr("host: want this key"));
  EXPECT_THAT(problem("[[host]]\nname = 'a'\ncores = 1\nmemory = 1\nranks = 0"), HasSubstr("at least one host with a rank"));
  EXPECT_THAT(problem("[[host]]\nname = 'a'\ncores = 1\nmemory = 1\n[[host]]\nname = 'a'\ncores = 1\nmemory = 1"), HasSubstr("got a twice"));
  EXPECT_THAT(problem("[[host"), HasSubstr("x.toml:1: "));
  EXPECT_THAT(parse_inventory_json("{", "x.json").error().detail, HasSubstr("x.json: not JSON"));
  EXPECT_EQ(read_inventory("/nonexistent.toml").error().code, ErrorCode::io);
}

TEST(Inventory, RanksOfOneHostShareIt) {
  const LocalResources first{"a", {0, 1}, 100, {{"GPU-0", "x", 1}}};
  const LocalResources second{"b", {0}, 50, {}};
  const LocalResources third{"a", {1, 2}, 100, {{"GPU-1", "x", 1}, {"GPU-0", "x", 1}}};
  const Inventory inventory = combine({first, second, third});
  ASSERT_EQ(inventory.hosts.size(), 2U);
  EXPECT_EQ(inventory.hosts[0].cores, 3U);
  EXPECT_EQ(inventory.hosts[0].memory_bytes, 100U);
  EXPECT_EQ(inventory.hosts[0].gpus.size(), 2U);
  EXPECT_THAT(inventory.ranks[2].gpus, ElementsAre(1, 0));
  EXPECT_EQ(inventory.host_of(Rank{1}).name, "b");
}

TEST(Inventory, FindsThisMachine) {
  const auto local = find_local_resources();
  ASSERT_TRUE(local.has_value()) << local.error().detail;
  EXPECT_FALSE(local->host.empty());
  EXPECT_GE(local->cores.size(), 1U);
  EXPECT_GT(local->memory_bytes, std::uint64_t{64} << 20);
  EXPECT_EQ(on_this_host(*local, 4).ranks.size(), 4U);
}

TEST(Bytes, ParsesUnits) {
  EXPECT_EQ(parse_bytes("17").value(), 17U);
  EXPECT_EQ(parse_bytes("1.5 KiB").value(), 1536U);
  EXPECT_EQ(parse_bytes("2GB").value(), 2000000000U);
  for (const char* bad : {"", "GiB", "-1", "1 XB", "nan", "1e30"}) EXPECT_FALSE(parse_bytes(bad).has_value()) << bad;
  EXPECT_EQ(print_bytes(1536), "1.5 KiB");
  EXPECT_EQ(print_bytes(100), "100 B");
}

TEST(Gpu, RefusesOneThatIsNotHere) {
  const auto refused = make_gpu_current("GPU-none");
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().detail, HasSubstr("GPU GPU-none: want it on this host"));
}

TEST(Gpu, BecomesTheThreadsCurrentDevice) {
  const auto gpus = find_gpus();
  ASSERT_TRUE(gpus.has_value()) << gpus.error().detail;
  if (gpus->empty()) GTEST_SKIP() << "this machine has no GPU";
  EXPECT_TRUE(gpus->front().uuid.starts_with("GPU-"));
  EXPECT_TRUE(make_gpu_current(gpus->front().uuid).has_value());
}

}  // namespace
}  // namespace troupe::scheduler
