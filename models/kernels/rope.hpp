#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/kernels/thread_pool.hpp"

namespace troupe::models {

/// Cosines and sines of position · frequency, times the attention factor, in double by our own functions, then rounded.
class RopeTable {
 public:
  /// inverse_frequencies: [head_dim / 2]. Fills positions [0, positions).
  RopeTable(std::span<const double> inverse_frequencies, double attention_factor, std::size_t positions);

  std::size_t half() const { return half_; }
  std::size_t positions() const { return half_ == 0 ? 0 : cos_.size() / half_; }
  std::span<const float> cos(std::size_t position) const { return std::span(cos_).subspan(position * half_, half_); }
  std::span<const float> sin(std::size_t position) const { return std::span(sin_).subspan(position * half_, half_); }

 private:
  std::size_t half_;
  std::vector<float> cos_, sin_;
};

/// Rotates halves (arXiv:2104.09864, Hugging Face's pairing i, i + head_dim / 2) in place: x [rows, heads, head_dim], positions [rows] absolute.
void rope(ThreadPool& pool, std::span<float> x, std::span<const std::uint32_t> positions, std::size_t heads, const RopeTable& table);

/// The gradient: the inverse rotation, in place.
void rope_backward(ThreadPool& pool, std::span<float> dx, std::span<const std::uint32_t> positions, std::size_t heads, const RopeTable& table);

}  // namespace troupe::models
