#pragma once

#include <cstddef>

namespace troupe::envelope_memory {

/// Memory for envelopes: each thread keeps freed blocks by size and trades surplus with the others in batches, so that a message costs neither
/// a lock nor a malloc even where one thread only sends and another only frees. Blocks above 1 KiB are malloc's own.
void* take(std::size_t bytes);
void give(void* block, std::size_t bytes);

}  // namespace troupe::envelope_memory
