#include <memory>

#include "jobs/cli/commands.hpp"
#include "jobs/json_lines.hpp"
#include "jobs/job.hpp"

namespace troupe::jobs::cli {
namespace {

struct Options {
  std::string job, inventory;
  std::vector<std::string> overrides;
  std::uint32_t ranks = 1;
  bool json = false;
};

Result<scheduler::Inventory> inventory_of(const Options& options) {
  if (!options.inventory.empty()) return scheduler::read_inventory(options.inventory);
  auto here = scheduler::find_local_resources();
  if (!here) return here.error();
  return scheduler::on_this_host(*here, options.ranks);
}

Result<int> plan(const Options& options) {
  auto config = read_job(options.job, options.overrides);
  if (!config) return config.error();
  if (auto done = check_job(*config); !done) return done.error();
  auto requests = requests_of(*config);
  if (!requests) return requests.error();
  auto inventory = inventory_of(options);
  if (!inventory) return inventory.error();
  auto placed = scheduler::make_plan(std::move(*inventory), std::move(*requests));
  if (!placed) return placed.error();
  if (auto done = write_result(options.json ? scheduler::print_json(*placed) + "\n" : scheduler::print_table(*placed), {}); !done) return done.error();
  return 0;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("plan", "who would run where, without running");
  command->add_option("JOB", options->job, "the job file")->required();
  command->add_option("key=value", options->overrides, "keys of the job file");
  auto* ranks = command->add_option("--ranks", options->ranks, "so many ranks on this host")->check(CLI::Range(1U, 4096U))->capture_default_str();
  command->add_option("--inventory", options->inventory, "a file that declares hosts and ranks")->excludes(ranks);
  command->add_flag("--json", options->json, "as one JSON object");
  command->callback([&action, options] { action = [options] { return plan(*options); }; });
}

}  // namespace troupe::jobs::cli
