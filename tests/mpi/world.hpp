#pragma once

#include <memory>

#include "transport/mpi/mpi_world.hpp"

namespace troupe::testing {

/// The world of a test under mpirun (its main entered it).
std::shared_ptr<transport::MpiWorld> world();

}  // namespace troupe::testing
