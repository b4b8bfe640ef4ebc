#include "actors/clock.hpp"

namespace troupe {

SteadyClock::SteadyClock() : start_(std::chrono::steady_clock::now().time_since_epoch()) {}

Time SteadyClock::now() const { return std::chrono::steady_clock::now().time_since_epoch() - start_; }

}  // namespace troupe
