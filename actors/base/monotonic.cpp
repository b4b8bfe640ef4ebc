#include "actors/base/monotonic.hpp"

namespace troupe {

std::chrono::nanoseconds monotonic_now() { return std::chrono::steady_clock::now().time_since_epoch(); }

}  // namespace troupe
