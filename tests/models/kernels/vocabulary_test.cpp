#include "models/kernels/vocabulary.hpp"

#include "models/kernels/comparing.hpp"
#include "models/kernels/naive_kernels.hpp"

namespace troupe::models {
namespace {

using namespace testing;

constexpr std::size_t kRows = 5;

TEST(Vocabulary, LogSumExpEqualsThePlainSums) {
  ThreadPool one;
  for (const std::size_t width : odd_sizes()) {
    for (const float temperature : {1.0F, 0.7F}) {
      const auto logits = numbers(kRows * width, 1, 90.0F);
      std::vector<LogSumExp> want(kRows);
      naive::log_sum_exp(one, want, logits, SegmentCuts::of(width), temperature);
      on_all_targets([&](ThreadPool& pool) {
        std::vector<LogSumExp> got(kRows);
        log_sum_exp(pool, got, logits, SegmentCuts::of(width), temperature);
        EXPECT_TRUE(equal_bits(got, want)) << width;
      });
    }
  }
}

TEST(Vocabulary, SplitLogSumExpCombinesToTheWhole) {
  ThreadPool one;
  constexpr std::size_t kWidth = 257;
  const auto logits = numbers(kWidth, 2, 20.0F);
  std::vector<LogSumExp> want(1);
  naive::log_sum_exp(one, want, logits, SegmentCuts::of(kWidth), 0.9F);
  on_all_targets([&](ThreadPool& pool) {
    for (const std::size_t degree : {1U, 2U, 4U, 8U}) {
      std::vector<LogSumExp> shards(degree);
      for (std::size_t i = 0; i < degree; ++i) {
        const SegmentCuts cuts = SegmentCuts::shard(kWidth, i, degree);
        log_sum_exp(pool, std::span(shards).subspan(i, 1), std::span(logits).subspan(cuts.first * kWidth / 8, cuts.total()), cuts, 0.9F);
      }
      EXPECT_TRUE(equal_bits(std::vector{combine_shards(shards)}, want)) << degree;
    }
  });
}

TEST(Vocabulary, LogProbabilityAndEntropyOfAnySplitAreTheWholes) {
  constexpr std::size_t kWidth = 97;
  const auto logits = numbers(kWidth, 5, 9.0F);
  std::vector<LogSumExp> plain(1);
  ThreadPool one;
  naive::log_sum_exp(one, plain, logits, SegmentCuts::of(kWidth), 0.8F);
  double sum = 0.0;
  for (const float logit : logits) sum += numerics::exp(log_probability(logit, 0.8F, plain[0]));
  EXPECT_NEAR(sum, 1.0, 1e-6);  // 97 float32 terms, each within 2^-23, and their sum
  on_all_targets([&](ThreadPool& pool) {
    for (const std::size_t degree : {1U, 2U, 4U, 8U}) {
      std::vector<LogSumExp> shards(degree);
      for (std::size_t i = 0; i < degree; ++i) {
        const SegmentCuts cuts = SegmentCuts::shard(kWidth, i, degree);
        log_sum_exp(pool, std::span(shards).subspan(i, 1), std::span(logits).subspan(cuts.first * kWidth / 8, cuts.total()), cuts, 0.8F);
      }
      const LogSumExp whole = combine_shards(shards);
      EXPECT_EQ(log_probability(logits[3], 0.8F, whole), log_probability(logits[3], 0.8F, plain[0])) << degree;
      EXPECT_EQ(entropy(whole), entropy(plain[0])) << degree;
    }
  });
}

TEST(Vocabulary, GradientsEqualThePlainOnesInPlaceToo) {
  ThreadPool one;
  for (const std::size_t width : odd_sizes()) {
    for (const float temperature : {1.0F, 0.7F}) {
      const auto logits = numbers(kRows * width, 3, 30.0F);
      std::vector<LogSumExp> whole(kRows);
      naive::log_sum_exp(one, whole, logits, SegmentCuts::of(width), temperature);
      const std::vector<float> coefficients{-0.25F, 0.0F, 1.5F, -1.0F, 0.125F};
      const std::vector<std::uint32_t> targets{40, 41, 40 + static_cast<std::uint32_t>(width / 2), 1, 39 + static_cast<std::uint32_t>(width)};
      std::vector<float> want(logits.size());
      naive::log_probability_gradient(one, want, logits, whole, targets, coefficients, 40, temperature);
      auto with_entropy = want;
      naive::add_entropy_gradient(one, with_entropy, logits, whole, coefficients, temperature);
      on_all_targets([&](ThreadPool& pool) {
        auto got = logits;
        log_probability_gradient(pool, got, got, whole, targets, coefficients, 40, temperature);
        EXPECT_TRUE(equal_bits(got, want)) << width;
        add_entropy_gradient(pool, got, logits, whole, coefficients, temperature);
        EXPECT_TRUE(equal_bits(got, with_entropy)) << width;
      });
    }
  }
}

}  // namespace
}  // namespace troupe::models
