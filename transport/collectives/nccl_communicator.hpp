#pragma once

#include <cstdint>
#include <memory>

#include "actors/base/bytes.hpp"
#include "transport/collectives/communicator.hpp"

namespace troupe::collectives {

/// Whether this build has NCCL.
bool has_nccl();

/// A new group's id (ncclUniqueId), for one member to make and the others to be told. Errors: unsupported without NCCL; io.
Result<Bytes> make_nccl_id();

/// A member of a group each of whose members has a GPU of its own, current on the calling thread, where all later calls are made. Data goes over
/// NCCL; sums are added on the host in the one tree over members, so they have the bits of every other communicator.
/// Collective. Errors: unsupported without NCCL; bad_input for an id that is none; io, with NCCL's or CUDA's own text.
Result<std::unique_ptr<Communicator>> open_nccl_communicator(BytesView id, std::uint32_t member, std::uint32_t size);

}  // namespace troupe::collectives
