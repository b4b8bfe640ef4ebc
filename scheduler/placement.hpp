#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/base/error.hpp"
#include "actors/base/fields.hpp"
#include "scheduler/inventory.hpp"
#include "scheduler/request.hpp"

namespace troupe::scheduler {

struct Assignment {
  std::uint32_t request = 0;  ///< index
  Rank rank{};
  std::vector<std::string> gpus;  ///< by UUID

  TROUPE_FIELDS(request, rank, gpus)
};

/// Why a request has no place: one line that says which resource is short, where, and who holds it.
struct Refusal {
  std::uint32_t request = 0;
  std::string reason;

  TROUPE_FIELDS(request, reason)
};

/// Every request is in exactly one of the two, in the order of the requests.
struct Placement {
  std::vector<Assignment> assigned;
  std::vector<Refusal> refused;

  bool is_complete() const { return refused.empty(); }
  /// Precondition: the request was placed.
  const Assignment& of(std::uint32_t request) const;
  TROUPE_FIELDS(assigned, refused)
};

/// Who runs where: a pure function of its two arguments. Cores and memory of a host are shared by its ranks, a GPU by those that see
/// it; none is given out beyond what there is. Requests that may go to fewer places go first, then larger ones, then earlier ones.
/// O(requests x ranks).
Placement place(const Inventory& inventory, const std::vector<Request>& requests);

/// What a gang's members speak through.
enum class CommunicatorKind : std::uint8_t { mpi, nccl };
std::string_view to_string(CommunicatorKind kind);

/// NCCL when every member has a GPU of its own, else MPI (and memory within a process).
CommunicatorKind communicator_kind(const std::vector<Assignment>& members);
/// The same from each member's first GPU by UUID, empty for none.
CommunicatorKind communicator_kind(const std::vector<std::string>& gpus);

}  // namespace troupe::scheduler
