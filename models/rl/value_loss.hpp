#pragma once

namespace troupe::models::rl {

struct ValueLoss {
  double loss = 0.0;   ///< ½ max((v − R)², (clip(v, v_old ± cliprange) − R)²)
  double slope = 0.0;  ///< d loss / d v
  bool clipped = false;
};

/// One token of a critic's clipped loss; aggregate it as the policy's.
ValueLoss value_loss(double value, double return_, double old_value, double cliprange_value = 0.5);

}  // namespace troupe::models::rl
