// rl-math's table of losses, and every derivative against central differences.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "models/rl/aggregation.hpp"
#include "models/rl/kl.hpp"
#include "models/rl/policy_loss.hpp"
#include "models/rl/value_loss.hpp"

namespace troupe::models::rl {
namespace {

using ::testing::ElementsAre;

using Numbers = std::vector<double>;

struct Sequence {
  Numbers logprobs = {-1.0 + std::log(0.5), -1, -1.0 + std::log(1.5)};
  Numbers old = {-1, -1, -1};
  Numbers advantages = {1, -1, 2};
  std::vector<std::uint8_t> mask = {1, 1, 1};

  PolicyLoss loss(LossMode mode) const { return policy_loss(mode, {}, {logprobs, old, advantages, mask, {}}); }
  double mean(LossMode mode) const { return total(mode) / 3; }
  double total(LossMode mode) const {
    double sum = 0;
    for (const double l : loss(mode).loss) sum += l;
    return sum;
  }
};

void expect_near(const Numbers& got, const Numbers& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance) << i;
}

TEST(PolicyLoss, Vanilla) {
  const Sequence sequence;
  expect_near(sequence.loss(LossMode::vanilla).loss, {-0.5, 1, -2.4}, 1e-14);
  EXPECT_NEAR(sequence.mean(LossMode::vanilla), -0.63333, 5e-6);
  EXPECT_EQ(sequence.loss(LossMode::vanilla).clipped, 1U);
  EXPECT_NEAR(sequence.loss(LossMode::vanilla).kl, -std::log(0.75), 1e-14);
}

TEST(PolicyLoss, DualClip) {
  Sequence sequence;
  sequence.logprobs = {-1 + std::log(0.5), -1, -1 + std::log(10)};
  sequence.advantages = {1, -1, -4};
  expect_near(sequence.loss(LossMode::vanilla).loss, {-0.5, 1, 12}, 1e-13);
  EXPECT_NEAR(sequence.mean(LossMode::vanilla), 4.16667, 5e-6);
  EXPECT_EQ(sequence.loss(LossMode::vanilla).clipped_lower, 1U);
  EXPECT_EQ(sequence.loss(LossMode::vanilla).slope[2], 0);
}

TEST(PolicyLoss, Cispo) { EXPECT_NEAR(Sequence{}.mean(LossMode::cispo), 0.59380, 5e-6); }
TEST(PolicyLoss, Gspo) { EXPECT_NEAR(Sequence{}.mean(LossMode::gspo), -0.60571, 5e-6); }
TEST(PolicyLoss, Gpg) { EXPECT_NEAR(Sequence{}.mean(LossMode::gpg), (1.0 - std::log(0.5) - 1 + 2 * (1 - std::log(1.5))) / 3, 1e-14); }

TEST(PolicyLoss, SapoAtRatioOneIsMinusTwoAdvantagesOverTau) {
  Sequence sequence;
  sequence.logprobs = sequence.old;
  expect_near(sequence.loss(LossMode::sapo).loss, {-2, 2 / 1.05, -4}, 1e-14);
}

TEST(PolicyLoss, GeoMean) {
  // log-ratios −0.693, 0, 0.405 held at 0.2 for the last: mean −0.16438; mean advantage 2/3.
  EXPECT_NEAR(Sequence{}.total(LossMode::geo_mean), -2.0 / 3 * std::exp((std::log(0.5) + 0.2) / 3), 1e-7);
}

TEST(PolicyLoss, MaskedTokensCountNothing) {
  for (const LossMode mode : {LossMode::vanilla, LossMode::gspo, LossMode::cispo, LossMode::gpg, LossMode::sapo, LossMode::geo_mean}) {
    Sequence sequence;
    sequence.mask[1] = 0;
    Sequence without = sequence;
    without.logprobs = {sequence.logprobs[0], sequence.logprobs[2]};
    without.old = {-1, -1};
    without.advantages = {1, 2};
    without.mask = {1, 1};
    const PolicyLoss masked = sequence.loss(mode), shorter = without.loss(mode);
    EXPECT_EQ(masked.loss, (Numbers{shorter.loss[0], 0, shorter.loss[1]}));
    EXPECT_EQ(masked.slope, (Numbers{shorter.slope[0], 0, shorter.slope[1]}));
  }
}

TEST(PolicyLoss, SlopesAreTheDerivatives) {
  const double h = 1e-6;
  for (const LossMode mode : {LossMode::vanilla, LossMode::gpg, LossMode::sapo, LossMode::geo_mean}) {
    for (const double shift : {-0.7, -0.1, 0.05, 0.4, 1.3}) {
      Sequence sequence;
      for (double& logprob : sequence.logprobs) logprob += shift;
      const PolicyLoss here = sequence.loss(mode);
      for (std::size_t t = 0; t < 3; ++t) {
        Sequence up = sequence, down = sequence;
        up.logprobs[t] += h;
        down.logprobs[t] -= h;
        EXPECT_NEAR(here.slope[t], (up.total(mode) - down.total(mode)) / (2 * h), 1e-8) << static_cast<int>(mode) << " " << shift << " " << t;
      }
    }
  }
}

TEST(PolicyLoss, DetachedPartsCountAsConstants) {
  // cispo: −clip(ρ) A; gspo: −A s where it is not clipped.
  const double s = std::exp((std::log(0.5) + std::log(1.5)) / 3);
  expect_near(Sequence{}.loss(LossMode::cispo).slope, {-0.8, 1, -2.4}, 1e-14);
  expect_near(Sequence{}.loss(LossMode::gspo).slope, {-s, s, -2 * s}, 1e-14);
}

TEST(PolicyLoss, RatiosBeyondTheClampHaveNoSlope) {
  Sequence sequence;
  sequence.logprobs[0] = -30;
  EXPECT_EQ(sequence.loss(LossMode::vanilla).slope[0], 0);
  EXPECT_NEAR(sequence.loss(LossMode::vanilla).loss[0], -std::exp(-20), 1e-15);
}

TEST(PolicyLoss, WeightsMultiply) {
  const Sequence s;
  const Numbers weights = {2, 0, 0.5};
  const PolicyLoss got = policy_loss(LossMode::vanilla, {}, {s.logprobs, s.old, s.advantages, s.mask, weights});
  expect_near(got.loss, {-1, 0, -1.2}, 1e-14);
  expect_near(got.slope, {-1, 0, 0}, 1e-14);
}

TEST(RolloutCorrection, TruncatesOrMasksByTokenOrSequence) {
  const Numbers old = {std::log(4.0), 0, std::log(0.25)}, rollout = {0, 0, 0};
  const std::vector<std::uint8_t> mask = {1, 1, 1};
  expect_near(importance_weights({}, old, rollout, mask).value(), {2, 1, 0.25}, 1e-15);
  expect_near(importance_weights({.mode = "mask"}, old, rollout, mask).value(), {0, 1, 0}, 1e-15);
  expect_near(importance_weights({.level = "sequence"}, old, rollout, mask).value(), {1, 1, 1}, 1e-15);
  EXPECT_EQ(importance_weights({.level = "word"}, old, rollout, mask).error().code, ErrorCode::bad_input);
}

TEST(Kl, ValuesOfTheKinds) {
  const double references[] = {0, -15, -30};
  const Numbers wanted[] = {{-1, 14, 29}, {1, 14, 29}, {0.5, 98, 420.5}, {0.71828, 10, 10}};
  for (const KlKind kind : {KlKind::k1, KlKind::abs, KlKind::k2, KlKind::k3}) {
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(kl(kind, -1, references[i]).value, wanted[static_cast<std::size_t>(kind)][i], 5e-6);
  }
}

TEST(Kl, SlopesAreTheDerivatives) {
  const double h = 1e-6;
  for (const KlKind kind : {KlKind::k1, KlKind::abs, KlKind::k2, KlKind::k3}) {
    for (const double reference : {-30.0, -15.0, -2.0, -1.3, -0.4, 3.0}) {
      const double difference = (kl(kind, -1 + h, reference).value - kl(kind, -1 - h, reference).value) / (2 * h);
      EXPECT_NEAR(kl(kind, -1, reference).slope, difference, 1e-7) << static_cast<int>(kind) << " " << reference;
    }
  }
}

TEST(Kl, NamesAreVerls) {
  EXPECT_EQ(parse_kl_kind("low_var_kl").value(), KlKind::k3);
  EXPECT_EQ(parse_kl_kind("mse").value(), KlKind::k2);
  EXPECT_EQ(parse_kl_kind("full").error().code, ErrorCode::bad_input);
}

TEST(Kl, AdaptiveCoefficientFollowsTheTarget) {
  AdaptiveKl above{.coefficient = 0.1, .target = 1, .horizon = 100}, near = above;
  above.update(5, 10);
  near.update(0.9, 10);
  EXPECT_NEAR(above.coefficient, 0.1 * (1 + 0.2 * 0.1), 1e-15);
  EXPECT_NEAR(near.coefficient, 0.1 * (1 - 0.1 * 0.1), 1e-15);
}

TEST(Aggregation, AllModes) {
  const std::vector<Numbers> losses = {{1, 2, 30}, {4, 50, 6}};
  const std::vector<std::vector<std::uint8_t>> masks = {{1, 1, 0}, {1, 0, 1}};
  EXPECT_EQ(aggregate(Aggregation::token_mean, losses, masks), 3.25);
  EXPECT_EQ(aggregate(Aggregation::token_sum, losses, masks), 13);
  EXPECT_EQ(aggregate(Aggregation::seq_mean_token_sum, losses, masks), 6.5);
  EXPECT_NEAR(aggregate(Aggregation::seq_mean_token_sum_norm, losses, masks, 3), 2.16667, 5e-6);
  EXPECT_NEAR(aggregate(Aggregation::seq_mean_token_mean, losses, masks), 3.25, 1e-7);
}

TEST(Aggregation, TokenWeightsAreItsDerivatives) {
  const std::vector<std::vector<std::uint8_t>> masks = {{1, 1, 0}, {1, 0, 0}, {0, 0, 0}};
  const Counts counts{.tokens = 3, .sequences = 2};
  for (const char* name : {"token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-sum-norm", "seq-mean-token-mean"}) {
    const Aggregation mode = parse_aggregation(name).value();
    const std::vector<Numbers> unit = {{1, 0, 0}, {0, 0, 0}, {0, 0, 0}};
    EXPECT_NEAR(aggregate(mode, unit, masks, 5), token_weight(mode, 2, counts, 5), 1e-16) << name;
  }
  EXPECT_EQ(parse_aggregation("mean").error().code, ErrorCode::bad_input);
}

TEST(ValueLoss, ClipsAroundTheOldValue) {
  const double v[] = {1, .2, 2}, returns[] = {.5, 1, 1}, old[] = {.2, .1, 1};
  double sum = 0;
  for (std::size_t i = 0; i < 3; ++i) sum += value_loss(v[i], returns[i], old[i]).loss;
  EXPECT_NEAR(sum / 3, 0.315, 1e-15);
}

TEST(ValueLoss, SlopesAreTheDerivatives) {
  const double h = 1e-6;
  for (const double v : {-2.0, -0.3, 0.1, 0.55, 0.9, 3.0}) {
    const double difference = (value_loss(v + h, 0.7, 0.2).loss - value_loss(v - h, 0.7, 0.2).loss) / (2 * h);
    EXPECT_NEAR(value_loss(v, 0.7, 0.2).slope, difference, 1e-8) << v;
  }
}

TEST(PolicyLoss, ModesAreNamedAndSomeFixTheirAggregation) {
  EXPECT_EQ(parse_loss_mode("geo_mean").value(), LossMode::geo_mean);
  EXPECT_EQ(parse_loss_mode("ppo").error().code, ErrorCode::bad_input);
  EXPECT_EQ(aggregation_of(LossMode::gspo, Aggregation::token_mean), Aggregation::seq_mean_token_mean);
  EXPECT_EQ(aggregation_of(LossMode::vanilla, Aggregation::token_sum), Aggregation::token_sum);
}

}  // namespace
}  // namespace troupe::models::rl
