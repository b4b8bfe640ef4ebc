#include "transport/mpi/launch.hpp"

#include <cstdlib>
#include <string>

namespace troupe::transport {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Result<bool> launched_with_mpi() {
  if (!variable("OMPI_COMM_WORLD_SIZE").empty() || !variable("PMIX_RANK").empty()) return true;
  // Only srun sets this one; the batch script itself, which counts the whole job's tasks in SLURM_NTASKS, does not have it.
  const std::string tasks = variable("SLURM_STEP_NUM_TASKS");
  if (!tasks.empty() && tasks != "1") {
    return Error{ErrorCode::unsupported, "Slurm step: want PMIx or one task, got " + tasks +
                                             " tasks without PMIx, each of which would run the whole job; start it with srun --mpi=pmix, or "
                                             "with mpirun inside the allocation"};
  }
  return false;
}

}  // namespace troupe::transport
