// Compiled once a target, like the kernels: what vectors compute equals the scalar functions.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/vectors_test.cpp"
#include <hwy/foreach_target.h>

#include "models/kernels/vectors.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::models::HWY_NAMESPACE {

void exp_all(float* values, std::size_t size) {
  for_vectors(0, size, [&](std::size_t i, std::size_t n) HWY_ATTR { store(exp_of(load(values + i, n)), values + i, n); });
}

}  // namespace troupe::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include "models/kernels/comparing.hpp"

namespace troupe::models {

HWY_EXPORT(exp_all);

namespace {

/// Inputs spread over all bit patterns, infinities and NaN among them.
std::vector<float> all_kinds_of_floats(std::uint32_t step) {
  std::vector<float> values{INFINITY, -INFINITY, 0.0F, -0.0F, -110.0F, 100.0F, 88.8F, -87.4F, -103.98F, NAN};
  for (std::uint64_t bits = 0; bits <= 0xFFFFFFFFU; bits += step) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return values;
}

TEST(Vectors, ExpEqualsTheScalarFunctionForAllKindsOfFloats) {
  const auto inputs = all_kinds_of_floats(1009);
  std::vector<float> want = inputs;
  for (float& value : want) value = numerics::exp(value);
  testing::on_all_targets([&](ThreadPool& pool) {
    if (pool.threads() > 1) return;
    std::vector<float> got = inputs;
    HWY_DYNAMIC_DISPATCH(exp_all)(got.data(), got.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (std::isnan(inputs[i]) && std::isnan(got[i])) got[i] = want[i];  // of a NaN only that it is one is fixed
    }
    EXPECT_TRUE(testing::equal_bits(got, want));
  });
}

}  // namespace
}  // namespace troupe::models
#endif
