#pragma once

#include <string>
#include <vector>

#include "actors/base/error.hpp"
#include "scheduler/placement.hpp"

namespace troupe::scheduler {

/// Who runs where, or would: what `troupe plan` prints and a run is started from.
struct Plan {
  Inventory inventory;
  std::vector<Request> requests;
  Placement placement;

  TROUPE_FIELDS(inventory, requests, placement)

  /// The rank of the actor; precondition: it is in the plan and was placed.
  Rank rank_of(std::string_view actor) const;
  /// Its GPUs by UUID; empty for none.
  const std::vector<std::string>& gpus_of(std::string_view actor) const;
  /// The members of a gang, in the order of its requests.
  std::vector<Assignment> members_of(std::string_view gang) const;
};

/// Places the requests. Errors: resource_short with every refusal, one a line, when something has no place; bad_input when two
/// requests have one name.
Result<Plan> make_plan(Inventory inventory, std::vector<Request> requests);

/// The same, but what has no place is in the plan's refusals.
Plan make_plan_with_refusals(Inventory inventory, std::vector<Request> requests);

/// A table: a line an actor with its rank, host, share of cores, memory and GPUs by UUID; a line a gang with its communicator; a
/// line a host with what is left; a line a refusal.
std::string print_table(const Plan& plan);
/// {"hosts": […], "actors": […], "gangs": […], "refused": […]}
std::string print_json(const Plan& plan);

}  // namespace troupe::scheduler
