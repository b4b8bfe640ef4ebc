#include "models/kernels/optimizer.hpp"

#include "models/kernels/comparing.hpp"
#include "models/kernels/naive_kernels.hpp"

namespace troupe::models {
namespace {

using namespace testing;

std::vector<float> squares_of(std::vector<float> x) {
  for (float& value : x) value *= value;
  return x;
}

TEST(Optimizer, AdamWEqualsThePlainUpdate) {
  ThreadPool one;
  const AdamW step{0.003, 0.9, 0.95, 1e-8, 0.1, 0.271, 0.1426, 0.83};
  for (const std::size_t size : odd_sizes()) {
    const auto p = numbers(size, 1), m = numbers(size, 2), v = squares_of(numbers(size, 3)), g = numbers(size, 4);
    auto want_p = p, want_m = m, want_v = v;
    naive::adamw_update(one, want_p, want_m, want_v, g, step);
    on_all_targets([&](ThreadPool& pool) {
      auto got_p = p, got_m = m, got_v = v;
      adamw_update(pool, got_p, got_m, got_v, g, step);
      EXPECT_TRUE(equal_bits(got_p, want_p)) << size;
      EXPECT_TRUE(equal_bits(got_m, want_m)) << size;
      EXPECT_TRUE(equal_bits(got_v, want_v)) << size;
    });
  }
}

TEST(Optimizer, RowSquaresEqualThePlainSumsAndSplit) {
  ThreadPool one;
  constexpr std::size_t kRows = 7;
  for (const std::size_t width : odd_sizes()) {
    for (const std::size_t degree : {1U, 2U, 4U, 8U}) {
      const SegmentCuts cuts = SegmentCuts::shard(width, degree - 1, degree);
      const auto g = numbers(kRows * cuts.total(), 1);
      std::vector<double> want(kRows);
      naive::row_squares(one, want, g, cuts);
      on_all_targets([&](ThreadPool& pool) {
        std::vector<double> got(kRows);
        row_squares(pool, got, g, cuts);
        EXPECT_TRUE(equal_bits(got, want)) << width << " of " << degree;
      });
    }
  }
}

TEST(Optimizer, RowsFoldInTheirSegmentsAcrossSplits) {
  std::vector<double> values;
  for (const float value : numbers(77, 5)) values.push_back(static_cast<double>(value));
  const double whole = fold_rows(values, SegmentCuts::of(77));
  for (const std::size_t degree : {2U, 4U, 8U}) {
    std::vector<double> parts;
    for (std::size_t i = 0; i < degree; ++i) {
      const SegmentCuts cuts = SegmentCuts::shard(77, i, degree);
      parts.push_back(fold_rows(std::span(values).subspan(cuts.first * 77 / 8, cuts.total()), cuts));
    }
    EXPECT_EQ(numerics::segment_tree(std::span<const double>(parts)), whole) << degree;
  }
}

}  // namespace
}  // namespace troupe::models
