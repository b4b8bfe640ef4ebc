#pragma once

namespace troupe::models::numerics {

/// Double precision without libm, the same on every processor: for rope tables, schedules, bias corrections, losses and rewards.
/// Within 1 ulp of the exact result, save where said; infinities, zeros and NaN as IEEE 754 has them.
double exp(double x);
double log(double x);  ///< log(±0) = −∞, log of a negative number is NaN

/// x^y for x ≥ 0, within 2 ulp (the logarithm is carried in two doubles); 0^0 = 1. A negative x gives NaN.
double pow(double x, double y);

/// Radians, |x| < 2^30; absolute error below 2^-53 + |x| 2^-90. Larger arguments give NaN.
double sin(double x);
double cos(double x);

double tanh(double x);

}  // namespace troupe::models::numerics
