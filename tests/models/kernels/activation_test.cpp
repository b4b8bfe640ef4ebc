#include "models/kernels/activation.hpp"

#include "models/kernels/comparing.hpp"
#include "models/kernels/naive_kernels.hpp"

namespace troupe::models {
namespace {

using namespace testing;

TEST(Activation, SwigluAndItsGradientEqualThePlainOnes) {
  ThreadPool one;
  for (const std::size_t size : odd_sizes()) {
    const auto gate = numbers(size, 1, 120.0F), up = numbers(size, 2), dh = numbers(size, 3);
    std::vector<float> h(size), dgate(size), dup(size);
    naive::swiglu(one, h, gate, up);
    naive::swiglu_backward(one, dgate, dup, dh, gate, up);
    on_all_targets([&](ThreadPool& pool) {
      auto g = gate, u = up;
      swiglu(pool, g, g, up);
      EXPECT_TRUE(equal_bits(g, h)) << size;
      g = gate;
      swiglu_backward(pool, g, u, dh, g, u);
      EXPECT_TRUE(equal_bits(g, dgate)) << size;
      EXPECT_TRUE(equal_bits(u, dup)) << size;
    });
  }
}

TEST(Activation, EmbeddingLookupCopiesRows) {
  const auto table = numbers(11 * 33, 1);
  const std::vector<std::uint32_t> tokens{3, 10, 0, 3, 7};
  on_all_targets([&](ThreadPool& pool) {
    std::vector<float> x(tokens.size() * 33);
    embedding_lookup(pool, x, tokens, table, 33);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(x[i], table[tokens[i / 33] * 33 + i % 33]);
  });
}

}  // namespace
}  // namespace troupe::models
