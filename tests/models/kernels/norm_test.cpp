#include "models/kernels/norm.hpp"

#include "models/kernels/comparing.hpp"
#include "models/kernels/naive_kernels.hpp"

namespace troupe::models {
namespace {

using namespace testing;

TEST(Norm, ForwardAndBackwardEqualThePlainSums) {
  ThreadPool one;
  constexpr std::size_t kRows = 23;
  for (const std::size_t dim : odd_sizes()) {
    const auto x = numbers(kRows * dim, 1, 3.0F), w = numbers(dim, 2), dy = numbers(kRows * dim, 3);
    std::vector<float> y(x.size()), r(kRows), dx(x.size());
    naive::rms_norm(one, y, x, w, 1e-6F, r);
    naive::rms_norm_backward(one, dx, dy, x, w, r);
    on_all_targets([&](ThreadPool& pool) {
      auto got = x;
      std::vector<float> inverse(kRows);
      rms_norm(pool, got, got, w, 1e-6F, inverse);
      EXPECT_TRUE(equal_bits(got, y)) << dim;
      EXPECT_TRUE(equal_bits(inverse, r)) << dim;
      got = dy;
      rms_norm_backward(pool, got, got, x, w, r);
      EXPECT_TRUE(equal_bits(got, dx)) << dim;
    });
  }
}

}  // namespace
}  // namespace troupe::models
