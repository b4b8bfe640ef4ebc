#include "models/rl/value_loss.hpp"

#include <algorithm>

namespace troupe::models::rl {

ValueLoss value_loss(double value, double return_, double old_value, double cliprange_value) {
  const double held = std::clamp(value, old_value - cliprange_value, old_value + cliprange_value);
  const double free_square = (value - return_) * (value - return_);
  const double held_square = (held - return_) * (held - return_);
  const bool clipped = held_square > free_square;
  // Inside the range both are the same function of the value.
  return {.loss = 0.5 * std::max(free_square, held_square), .slope = clipped ? 0.0 : value - return_, .clipped = clipped};
}

}  // namespace troupe::models::rl
