#include "models/rope_frequencies.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "models/numerics/double_math.hpp"

namespace troupe::models {
namespace {

constexpr double kTwoPi = 2.0 * std::numbers::pi;

void scale_llama3(std::vector<double>& inverse, const Rope& rope) {
  const double length = rope.original_positions_max;
  for (double& frequency : inverse) {
    const double wavelength = kTwoPi / frequency;
    if (wavelength < length / rope.high_freq_factor) continue;
    const double slow = frequency / rope.factor;
    const double smooth = (length / wavelength - rope.low_freq_factor) / (rope.high_freq_factor - rope.low_freq_factor);
    frequency = wavelength > length / rope.low_freq_factor ? slow : (1.0 - smooth) * slow + smooth * frequency;
  }
}

/// The dimension whose frequency makes that many rotations over the original length.
double yarn_dimension(double rotations, const Rope& rope, double head_dim) {
  return head_dim * numerics::log(rope.original_positions_max / (rotations * kTwoPi)) / (2.0 * numerics::log(rope.theta));
}

void scale_yarn(std::vector<double>& inverse, const Rope& rope, double head_dim) {
  double low = yarn_dimension(rope.beta_fast, rope, head_dim);
  double high = yarn_dimension(rope.beta_slow, rope, head_dim);
  if (rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, head_dim - 1.0);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < inverse.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    inverse[i] = inverse[i] / rope.factor * ramp + inverse[i] * (1.0 - ramp);
  }
}

}  // namespace

RopeFrequencies rope_frequencies(const Rope& rope, std::uint32_t head_dim) {
  RopeFrequencies out;
  out.inverse.resize(head_dim / 2);
  for (std::size_t i = 0; i < out.inverse.size(); ++i) {
    out.inverse[i] = 1.0 / numerics::pow(rope.theta, static_cast<double>(2 * i) / head_dim);
  }
  switch (rope.kind) {
    case RopeKind::standard: break;
    case RopeKind::linear:
      for (double& frequency : out.inverse) frequency /= rope.factor;
      break;
    case RopeKind::llama3: scale_llama3(out.inverse, rope); break;
    case RopeKind::yarn:
      scale_yarn(out.inverse, rope, head_dim);
      out.attention_factor = rope.attention_factor.value_or(0.1 * numerics::log(rope.factor) + 1.0);
      break;
  }
  return out;
}

}  // namespace troupe::models
