#pragma once

#include "actors/base/error.hpp"

namespace troupe::transport {

/// How this process was started, from what the launchers set in its environment. True under mpirun (OMPI_COMM_WORLD_SIZE) and under
/// PMIx (PMIX_RANK, as srun --mpi=pmix sets it): a world of ranks is there to be joined. False: one rank, and MPI is never entered.
/// Errors: unsupported, in a Slurm step of several tasks without PMIx, where each task would take itself for the whole job.
Result<bool> launched_with_mpi();

}  // namespace troupe::transport
