#pragma once

#include <cstdint>
#include <vector>

#include "models/config.hpp"

namespace troupe::models {

/// What RopeTable takes: an inverse frequency for each pair of a head's elements, and the factor on cosines and sines.
struct RopeFrequencies {
  std::vector<double> inverse;  ///< [head_dim / 2] radians a position
  double attention_factor = 1.0;
};

/// As transformers computes them (modeling_rope_utils.py), in double: standard, linear, llama3 (frequencies in three bands by wavelength)
/// and yarn (arXiv:2309.00071; a ramp over the dimensions between two numbers of rotations).
RopeFrequencies rope_frequencies(const Rope& rope, std::uint32_t head_dim);

}  // namespace troupe::models
