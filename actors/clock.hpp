#pragma once

#include "actors/delivery.hpp"

namespace troupe {

/// The one place where actors' time comes from: monotonic, from the clock's construction.
class SteadyClock {
 public:
  SteadyClock();
  Time now() const;

 private:
  Time start_;
};

}  // namespace troupe
