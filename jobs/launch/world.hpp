#pragma once

#include <memory>

#include "actors/base/error.hpp"
#include "transport/world.hpp"

namespace troupe::jobs {

/// Whether this process is the one that prints: rank 0 as the launchers' environment has it, or the only one. Needs no MPI.
bool is_rank_zero();

/// A rank that a launcher started: ties its life to mpirun's and tells the launcher where to send signals. Call it once the process takes them.
void report_to_launcher();

/// The world that this process was started in. Errors: unsupported, with advice, in a Slurm step of
/// several tasks without PMIx; internal.
Result<std::unique_ptr<transport::World>> join_world();

/// Tells the launcher, if there is one, how this rank ends.
void note_exit_code(int code);

/// Ends this rank: tells the launcher the exit code and leaves MPI. An error becomes its exit code, printed on rank 0. Gives what main returns.
int end_rank(transport::World& world, Result<int> code);

}  // namespace troupe::jobs
