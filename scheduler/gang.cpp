#include "scheduler/gang.hpp"

#include "scheduler/gpu.hpp"
#include "scheduler/placement.hpp"
#include "transport/collectives/fabric.hpp"
#include "transport/collectives/nccl_communicator.hpp"

namespace troupe::scheduler {

std::string member_name(std::string_view gang, std::uint32_t member) { return std::string(gang) + "/" + std::to_string(member); }

namespace {

collectives::GroupSpec group_of(const GangPlace& place) { return {.id = place.group, .name = place.gang, .ranks = place.ranks}; }

}  // namespace

void abandon_gang(const GangPlace& place, const Error& error) {
  if (place.size() > 1) collectives::Fabric::process().abort(group_of(place), {error.code, member_name(place.gang, place.member) + ": " + error.detail});
}

Result<std::unique_ptr<collectives::Communicator>> open_communicator(const GangPlace& place) {
  Result<std::unique_ptr<collectives::Communicator>> opened = collectives::Fabric::process().open(group_of(place), place.member);
  if (!opened || communicator_kind(place.gpus) == CommunicatorKind::mpi) return opened;
  Bytes id;
  if (place.member == 0) {
    Result<Bytes> made = collectives::make_nccl_id();
    if (made) id = std::move(*made);  // else the others get none, and say so
  }
  Result<std::vector<Bytes>> ids = (*opened)->all_gather_variable(id);
  if (!ids) return ids.error();
  return collectives::open_nccl_communicator(ids->front(), place.member, place.size());
}

Result<void> take_place(const GangPlace& place) {
  const bool has_gpu = place.member < place.gpus.size() && !place.gpus[place.member].empty();
  return has_gpu ? make_gpu_current(place.gpus[place.member]) : Result<void>{};
}

SpawnOptions member_options() { return {.own_thread = true, .gang_member = true}; }

}  // namespace troupe::scheduler
