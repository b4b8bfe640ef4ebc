#pragma once

// What the sums of a group must be, from the definition alone, and programs of collectives whose results can be compared.

#include <bit>
#include <cstring>
#include <span>
#include <vector>

#include "actors/base/philox.hpp"
#include "transport/collectives/communicator.hpp"

namespace troupe::collectives::testing {

/// Values whose sum depends on the order: magnitudes from 2^-12 to 2^12, both signs.
template <class T>
std::vector<T> values_of(std::uint32_t member, std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto words = draw({.seed = 7, .purpose = Purpose::data, .prompt = i, .sample = member, .position = 0});
    const double unit = uniform_double(words[0], words[1]) - 0.5;
    values[i] = static_cast<T>(unit * static_cast<double>(1U << (words[2] % 25)) / 4096.0);
  }
  return values;
}

/// The definition: split at the largest power of two below the count.
template <class T>
std::vector<T> tree_sum(std::span<const std::vector<T>> members) {
  if (members.size() == 1) return members[0];
  const std::size_t first = std::bit_ceil(members.size()) / 2;
  std::vector<T> sum = tree_sum(members.first(first));
  const std::vector<T> rest = tree_sum(members.subspan(first));
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] + rest[i];
  return sum;
}

template <class T>
std::vector<T> expected_sum(std::uint32_t size, std::size_t count) {
  std::vector<std::vector<T>> members;
  for (std::uint32_t member = 0; member < size; ++member) members.push_back(values_of<T>(member, count));
  return tree_sum<T>(members);
}

template <class T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

/// One step of a learner with data 2 x tensor 2, in miniature: activations are summed over the tensor pair, gradients scattered over the
/// data pair, a norm over all. Returns what this member holds in the end; it depends on the member alone.
inline Result<std::vector<float>> data_tensor_step(Communicator& all) {
  constexpr std::size_t kCount = 4001;
  auto tensor = all.split(all.member() / 2, all.member() % 2);
  if (!tensor) return tensor.error();
  auto data = all.split(all.member() % 2, all.member() / 2);
  if (!data) return data.error();
  auto activations = values_of<float>(all.member(), kCount);
  if (auto done = (*tensor)->all_reduce_sum(activations); !done) return done.error();
  for (float& value : activations) value = value * value - 0.25F;
  const auto [first, last] = piece_of(kCount, (*data)->member(), (*data)->size());
  std::vector<float> piece(last - first);
  if (auto done = (*data)->reduce_scatter_sum(std::span<float>(activations), std::span<float>(piece)); !done) return done.error();
  std::vector<double> norm{0.0};
  for (const float value : piece) norm[0] = norm[0] + static_cast<double>(value) * static_cast<double>(value);
  if (auto done = all.all_reduce_sum(std::span<double>(norm)); !done) return done.error();
  piece.push_back(static_cast<float>(norm[0]));
  return piece;
}

}  // namespace troupe::collectives::testing
