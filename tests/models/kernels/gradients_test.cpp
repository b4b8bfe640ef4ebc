#include "models/kernels/gradients.hpp"

#include "models/kernels/comparing.hpp"
#include "models/kernels/naive_kernels.hpp"

namespace troupe::models {
namespace {

using namespace testing;

/// An absent sequence, blocks of 128 with odd ends, rows that belong to none.
const std::vector<SequenceRows> kSequences{{0, 1}, {1, 130}, {131, 0}, {140, 300}, {440, 12}, {460, 257}, {717, 3}};
constexpr std::size_t kRows = 720;

void expect_equal(const GradientNodes& got, const GradientNodes& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].level, want[i].level);
    EXPECT_EQ(got[i].index, want[i].index);
    EXPECT_EQ(got[i].present, want[i].present);
    EXPECT_EQ(got[i].sparse, want[i].sparse);
    EXPECT_EQ(got[i].rows, want[i].rows);
    EXPECT_TRUE(equal_bits(got[i].data, want[i].data)) << i;
  }
}

TEST(Gradients, LinearWeightEqualsThePlainTree) {
  ThreadPool one;
  for (const std::size_t outputs : {1U, 11U, 13U, 37U}) {
    for (const std::size_t inputs : {1U, 31U, 33U, 80U}) {
      const auto dy = numbers(kRows * outputs, 1), x = numbers(kRows * inputs, 2);
      for (const std::uint64_t first : {0U, 3U}) {
        const auto want = naive::linear_gradient_weight(one, dy, outputs, x, inputs, kSequences, first);
        on_all_targets([&](ThreadPool& pool) { expect_equal(linear_gradient_weight(pool, dy, outputs, x, inputs, kSequences, first), want); });
      }
    }
  }
}

TEST(Gradients, LinearWeightOfAnyContiguousSplitFoldsToTheSameTree) {
  constexpr std::size_t kOutputs = 13, kInputs = 33;
  const auto dy = numbers(kRows * kOutputs, 1), x = numbers(kRows * kInputs, 2);
  ThreadPool one;
  const auto want = fold_nodes(one, naive::linear_gradient_weight(one, dy, kOutputs, x, kInputs, kSequences, 0), kOutputs * kInputs);
  on_all_targets([&](ThreadPool& pool) {
    for (std::size_t cut = 0; cut <= kSequences.size(); ++cut) {
      const auto all = std::span(kSequences);
      GradientNodes nodes = linear_gradient_weight(pool, dy, kOutputs, x, kInputs, all.first(cut), 0);
      append_nodes(pool, nodes, linear_gradient_weight(pool, dy, kOutputs, x, kInputs, all.subspan(cut), cut));
      EXPECT_TRUE(equal_bits(fold_nodes(pool, nodes, kOutputs * kInputs), want)) << cut;
    }
  });
}

TEST(Gradients, BiasNormAndEmbeddingEqualThePlainTrees) {
  ThreadPool one;
  for (const std::size_t dim : {1U, 31U, 66U}) {
    const auto dy = numbers(kRows * dim, 1), x = numbers(kRows * dim, 2), r = numbers(kRows, 3);
    std::vector<std::uint32_t> tokens;
    for (std::size_t i = 0; i < kRows; ++i) tokens.push_back(static_cast<std::uint32_t>(i * i % 29));
    const auto bias = naive::bias_gradient(one, dy, dim, kSequences, 1);
    const auto norm = naive::norm_weight_gradient(one, dy, x, r, dim, kSequences, 1);
    const auto embedding = naive::embedding_gradient(one, dy, dim, tokens, kSequences, 1);
    on_all_targets([&](ThreadPool& pool) {
      expect_equal(bias_gradient(pool, dy, dim, kSequences, 1), bias);
      expect_equal(norm_weight_gradient(pool, dy, x, r, dim, kSequences, 1), norm);
      expect_equal(embedding_gradient(pool, dy, dim, tokens, kSequences, 1), embedding);
    });
  }
}

TEST(Gradients, HeadNormEqualsThePlainTreeAndFoldsAcrossSplits) {
  ThreadPool one;
  constexpr std::size_t kHeads = 16, kDim = 9;
  const auto dy = numbers(kRows * kHeads * kDim, 1), x = numbers(kRows * kHeads * kDim, 2), r = numbers(kRows * kHeads, 3);
  const auto want = naive::head_norm_weight_gradient(one, dy, x, r, kHeads, kDim, kSequences, 0);
  on_all_targets([&](ThreadPool& pool) { expect_equal(head_norm_weight_gradient(pool, dy, x, r, kHeads, kDim, kSequences, 0), want); });
  const auto gradient = numbers(kHeads * kDim, 4);
  std::vector<float> whole(kDim), left(kDim), right(kDim);
  fold_heads(whole, gradient, kDim, SegmentCuts::of(kHeads));
  fold_heads(left, std::span(gradient).first(8 * kDim), kDim, SegmentCuts::shard(kHeads, 0, 2));
  fold_heads(right, std::span(gradient).subspan(8 * kDim), kDim, SegmentCuts::shard(kHeads, 1, 2));
  for (std::size_t i = 0; i < kDim; ++i) left[i] += right[i];
  EXPECT_TRUE(equal_bits(left, whole));
}

}  // namespace
}  // namespace troupe::models
