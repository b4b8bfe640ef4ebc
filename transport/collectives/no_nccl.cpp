// In place of nccl_communicator.cpp where there is no CUDA toolkit with NCCL.

#include "transport/collectives/nccl_communicator.hpp"

namespace troupe::collectives {
namespace {

Error without_nccl() { return {ErrorCode::unsupported, "NCCL: this build has none; build with TROUPE_CUDA=on where the CUDA toolkit and NCCL are installed"}; }

}  // namespace

bool has_nccl() { return false; }
Result<Bytes> make_nccl_id() { return without_nccl(); }
Result<std::unique_ptr<Communicator>> open_nccl_communicator(BytesView, std::uint32_t, std::uint32_t) { return without_nccl(); }

}  // namespace troupe::collectives
