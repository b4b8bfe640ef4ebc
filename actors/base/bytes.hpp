#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace troupe {

using Bytes = std::vector<std::byte>;
using BytesView = std::span<const std::byte>;

}  // namespace troupe
