#include "scheduler/gang.hpp"

#include "transport/collectives/fabric.hpp"

namespace troupe::scheduler {

std::string member_name(std::string_view gang, std::uint32_t member) { return std::string(gang) + "/" + std::to_string(member); }

Result<std::unique_ptr<collectives::Communicator>> open_communicator(const GangPlace& place) {
  const collectives::GroupSpec group{.id = place.group, .name = place.gang, .ranks = place.ranks};
  return collectives::Fabric::process().open(group, place.member);
}

SpawnOptions member_options() { return {.own_thread = true}; }

}  // namespace troupe::scheduler
