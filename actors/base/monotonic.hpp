#pragma once

#include <chrono>

namespace troupe {

/// For measuring our own cost only: never recorded, never seen by an actor (actors ask their context).
std::chrono::nanoseconds monotonic_now();

}  // namespace troupe
