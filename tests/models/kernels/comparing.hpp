#pragma once

// What the kernel tests share: numbers with hard cases among them, and every way of running a kernel that may not change a bit.

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "models/kernels/thread_pool.hpp"
#include "models/numerics/processor.hpp"

namespace troupe::models::testing {

/// Numbers of both signs in [−scale, scale), every one its own; of each 61 one is +0, one −0 and one denormal.
inline std::vector<float> numbers(std::size_t count, std::uint32_t seed, float scale = 1.0F) {
  std::vector<float> out(count);
  std::uint32_t state = seed * 2654435761U + 12345U;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    out[i] = (static_cast<float>(state >> 8) * 0x1p-23F - 1.0F) * scale;
    if (i % 61 == 17) out[i] = 0.0F;
    if (i % 61 == 31) out[i] = -0.0F;
    if (i % 61 == 47) out[i] = std::bit_cast<float>(state & 0x807FFFFFU);
  }
  return out;
}

template <class T>
::testing::AssertionResult equal_bits(const std::vector<T>& got, const std::vector<T>& want) {
  if (got.size() != want.size()) return ::testing::AssertionFailure() << got.size() << " and " << want.size() << " elements";
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &want[i], sizeof(T)) != 0) return ::testing::AssertionFailure() << "element " << i << " of " << got.size();
  }
  return ::testing::AssertionSuccess();
}

/// Calls body(pool) with every instruction set of this processor and 1, 2, 3 and 8 threads; the one chosen before is chosen again.
template <class Body>
void on_all_targets(Body body) {
  const std::string chosen(numerics::to_string(numerics::selected_target()));
  for (const numerics::SimdTarget target : numerics::supported_targets()) {
    numerics::select_target(numerics::to_string(target)).value();
    for (const std::size_t threads : {1U, 2U, 3U, 8U}) {
      SCOPED_TRACE(std::string(numerics::to_string(target)) + ", " + std::to_string(threads) + " threads");
      ThreadPool pool(threads);
      body(pool);
    }
  }
  numerics::select_target(chosen).value();
}

/// Sizes below, at and beyond vectors, tiles and panels, primes among them.
inline const std::vector<std::size_t>& odd_sizes() {
  static const std::vector<std::size_t> sizes{1, 7, 16, 31, 33, 64, 97, 257};
  return sizes;
}

}  // namespace troupe::models::testing
