#include "models/kernels/rope.hpp"

#include "models/kernels/comparing.hpp"
#include "models/kernels/naive_kernels.hpp"

namespace troupe::models {
namespace {

using namespace testing;

TEST(Rope, ForwardAndBackwardEqualThePlainRotation) {
  ThreadPool one;
  for (const std::size_t half : {1U, 4U, 15U, 17U, 32U, 40U}) {
    std::vector<double> frequencies;
    for (std::size_t i = 0; i < half; ++i) frequencies.push_back(1.0 / static_cast<double>(1 + i * i));
    const RopeTable table(frequencies, 1.1, 50);
    const std::vector<std::uint32_t> positions{0, 1, 7, 49, 3};
    const auto x = numbers(positions.size() * 3 * 2 * half, 1);
    auto forward = x, backward = x;
    naive::rope(one, forward, positions, 3, table);
    naive::rope_backward(one, backward, positions, 3, table);
    on_all_targets([&](ThreadPool& pool) {
      auto f = x, b = x;
      rope(pool, f, positions, 3, table);
      rope_backward(pool, b, positions, 3, table);
      EXPECT_TRUE(equal_bits(f, forward)) << half;
      EXPECT_TRUE(equal_bits(b, backward)) << half;
    });
  }
}

}  // namespace
}  // namespace troupe::models
