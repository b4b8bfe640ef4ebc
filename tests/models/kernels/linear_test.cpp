#include "models/kernels/linear.hpp"

#include <span>

#include "models/kernels/comparing.hpp"
#include "models/kernels/naive_kernels.hpp"

namespace troupe::models {
namespace {

using namespace testing;

std::vector<float> linear_of(ThreadPool& pool, const std::vector<float>& x, std::size_t rows, const PackedMatrix& b) {
  std::vector<float> y(rows * b.outputs());
  linear(pool, y, x, rows, b);
  return y;
}

TEST(Linear, EqualsThePlainChainsOverOddShapes) {
  ThreadPool one;
  for (const std::size_t depth : {1U, 7U, 33U, 97U, 257U}) {
    for (const std::size_t outputs : {1U, 31U, 33U, 64U, 131U}) {
      PackedMatrix b;
      b.pack(one, numbers(outputs * depth, 1), outputs, SegmentCuts::of(depth));
      for (const std::size_t rows : {1U, 2U, 3U, 5U, 6U, 7U, 12U, 13U, 31U, 101U}) {
        const auto x = numbers(rows * depth, 2);
        std::vector<float> want(rows * outputs);
        naive::linear(one, want, x, rows, b);
        on_all_targets([&](ThreadPool& pool) { EXPECT_TRUE(equal_bits(linear_of(pool, x, rows, b), want)) << depth << " -> " << outputs << ", rows " << rows; });
      }
    }
  }
}

TEST(Linear, GivesARowTheSameBitsInAnyBatch) {
  ThreadPool one;
  constexpr std::size_t kDepth = 131, kOutputs = 67, kRows = 29;
  PackedMatrix b;
  b.pack(one, numbers(kOutputs * kDepth, 1), kOutputs, SegmentCuts::of(kDepth));
  const auto x = numbers(kRows * kDepth, 2);
  const auto whole = linear_of(one, x, kRows, b);
  on_all_targets([&](ThreadPool& pool) {
    for (std::size_t row = 0; row < kRows; ++row) {
      const std::vector<float> alone(&x[row * kDepth], &x[row * kDepth] + kDepth);
      EXPECT_TRUE(equal_bits(linear_of(pool, alone, 1, b), {&whole[row * kOutputs], &whole[row * kOutputs] + kOutputs})) << row;
    }
  });
}

/// The shards' subtrees of a contraction over columns, added in the tree.
std::vector<float> split_linear(ThreadPool& pool, const std::vector<float>& w, std::size_t outputs, const std::vector<float>& x, std::size_t depth,
                                std::size_t rows, std::size_t degree) {
  std::vector<std::vector<float>> parts;
  for (std::size_t shard = 0; shard < degree; ++shard) {
    const SegmentCuts cuts = SegmentCuts::shard(depth, shard, degree);
    const std::size_t from = cuts.first * depth / numerics::kSegments;
    std::vector<float> columns, inputs;
    for (std::size_t o = 0; o < outputs; ++o) columns.insert(columns.end(), &w[o * depth + from], &w[o * depth + from] + cuts.total());
    for (std::size_t r = 0; r < rows; ++r) inputs.insert(inputs.end(), &x[r * depth + from], &x[r * depth + from] + cuts.total());
    PackedMatrix b;
    b.pack(pool, columns, outputs, cuts);
    parts.push_back(linear_of(pool, inputs, rows, b));
  }
  for (; parts.size() > 1; parts.resize(parts.size() / 2)) {
    for (std::size_t i = 0; i < parts.size() / 2; ++i) {
      std::vector<float> sum = parts[2 * i];
      add(pool, sum, parts[2 * i + 1]);
      parts[i] = sum;
    }
  }
  return parts[0];
}

TEST(Linear, TensorParallelSplitsAddUpToTheWhole) {
  ThreadPool one;
  for (const std::size_t depth : {5U, 31U, 200U, 257U}) {
    constexpr std::size_t kOutputs = 37, kRows = 9;
    const auto w = numbers(kOutputs * depth, 3), x = numbers(kRows * depth, 4);
    PackedMatrix b;
    b.pack(one, w, kOutputs, SegmentCuts::of(depth));
    std::vector<float> want(kRows * kOutputs);
    naive::linear(one, want, x, kRows, b);
    on_all_targets([&](ThreadPool& pool) {
      for (const std::size_t degree : {1U, 2U, 4U, 8U}) EXPECT_TRUE(equal_bits(split_linear(pool, w, kOutputs, x, depth, kRows, degree), want)) << degree;
    });
  }
}

TEST(Linear, GradientOfTheInputOfSeveralLinearsIsOneContraction) {
  ThreadPool one;
  constexpr std::size_t kInputs = 45, kRows = 14;
  const auto q = numbers(33 * kInputs, 1), k = numbers(11 * kInputs, 2), dq = numbers(kRows * 33, 3), dk = numbers(kRows * 11, 4);
  const SegmentCuts q_cuts = SegmentCuts::of(33), k_cuts = SegmentCuts::of(11);
  std::vector<float> want(kRows * kInputs);
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t i = 0; i < kInputs; ++i) {
      std::array<float, numerics::kSegments> sums{};
      for (std::size_t s = 0; s < numerics::kSegments; ++s) {
        for (std::size_t o = q_cuts.offset[s]; o < q_cuts.offset[s + 1]; ++o) sums[s] = std::fma(dq[row * 33 + o], q[o * kInputs + i], sums[s]);
        for (std::size_t o = k_cuts.offset[s]; o < k_cuts.offset[s + 1]; ++o) sums[s] = std::fma(dk[row * 11 + o], k[o * kInputs + i], sums[s]);
      }
      want[row * kInputs + i] = numerics::segment_tree(std::span<const float>(sums));
    }
  }
  on_all_targets([&](ThreadPool& pool) {
    PackedMatrix b;
    const TransposedPart parts[] = {{q, q_cuts}, {k, k_cuts}};
    b.pack_transposed(pool, parts, kInputs);
    std::vector<float> x(kRows * 44);
    const SegmentSource sources[] = {{dq, q_cuts}, {dk, k_cuts}};
    gather_segments(pool, x, sources, kRows);
    EXPECT_TRUE(equal_bits(linear_of(pool, x, kRows, b), want));
  });
}

TEST(Linear, ElementwiseSumsEqualThePlainOnes) {
  ThreadPool one;
  for (const std::size_t size : odd_sizes()) {
    const auto x = numbers(3 * size, 5), other = numbers(3 * size, 6), bias = numbers(size, 7);
    auto want = x;
    naive::add_bias(one, want, bias, 3);
    naive::add(one, want, other);
    naive::scale(one, want, 0.37F);
    on_all_targets([&](ThreadPool& pool) {
      auto got = x;
      add_bias(pool, got, bias, 3);
      add(pool, got, other);
      scale(pool, got, 0.37F);
      EXPECT_TRUE(equal_bits(got, want)) << size;
    });
  }
}

}  // namespace
}  // namespace troupe::models
