#pragma once

#include <memory>

#include "actors/base/error.hpp"
#include "transport/collectives/wire.hpp"
#include "transport/mpi/mpi_world.hpp"

namespace troupe::collectives {

struct MpiWireOptions {
  std::size_t message_bytes_max = std::size_t{1} << 30;  ///< MPI counts in int: what is larger is cut
  int deadline_s = 60;                                   ///< for every rank to open its wire
};

/// The wire between the ranks of an MPI job: non-blocking sends and receives on a communicator of its own. All ranks open theirs, from
/// one thread each. It holds the world, and is to be dropped before the world is left. What is under way when it is
/// destroyed stays allocated, because MPI may still write to it.
Result<std::shared_ptr<Wire>> open_mpi_wire(std::shared_ptr<transport::MpiWorld> world, const MpiWireOptions& options = {});

}  // namespace troupe::collectives
