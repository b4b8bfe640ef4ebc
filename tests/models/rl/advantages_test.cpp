// rl-math's table of advantages, to the digits that stand there.

#include "models/rl/advantages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "models/rl/rewards.hpp"

namespace troupe::models::rl {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Responses of one token each in one group.
std::vector<Response> group_of(const std::vector<double>& rewards) {
  std::vector<Response> batch;
  for (const double reward : rewards) batch.push_back({.group = 7, .rewards = {reward}, .mask = {1}});
  return batch;
}

/// The first token's advantage of each response.
std::vector<double> firsts(const std::vector<Response>& batch, const AdvantageSettings& settings) {
  std::vector<double> out;
  for (const auto& row : advantages(batch, settings).value().advantages) out.push_back(row.at(0));
  return out;
}

std::vector<double> of_group(const std::string& estimator, const std::vector<double>& rewards, bool norm = true) {
  return firsts(group_of(rewards), {.adv_estimator = estimator, .norm_adv_by_std_in_grpo = norm});
}

void expect_near(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance) << i;
}

TEST(Grpo, NormalisesByTheGroup) {
  expect_near(of_group("grpo", {1, 3}), {-0.7071063, 0.7071063}, 5e-8);
  expect_near(of_group("grpo", {2, 2}), {0, 0}, 0);
  expect_near(of_group("grpo", {1, 0, 0, 1}), {0.8660239, -0.8660239, -0.8660239, 0.8660239}, 5e-8);
}

TEST(Grpo, WithoutTheDeviationIsDrGrpo) { expect_near(of_group("grpo", {1, 0, 0, 1}, false), {0.5, -0.5, -0.5, 0.5}, 1e-15); }

TEST(Grpo, LeavesAGroupOfOneItsReward) { expect_near(of_group("grpo", {0.7}), {0.6999993}, 5e-8); }

TEST(Grpo, KeepsGroupsApartWhereverTheyStand) {
  std::vector<Response> batch = group_of({1, 5, 3, 9});
  batch[1].group = batch[3].group = 2;
  expect_near(firsts(batch, {.adv_estimator = "grpo", .norm_adv_by_std_in_grpo = false}), {-1, -2, 1, 2}, 1e-15);
}

TEST(Grpo, GivesMaskedTokensNothing) {
  std::vector<Response> batch = group_of({1, 3});
  batch[1] = {.group = 7, .rewards = {0, 1, 2}, .mask = {1, 0, 1}};
  expect_near(advantages(batch, {.adv_estimator = "grpo"}).value().advantages[1], {0.7071063, 0, 0.7071063}, 5e-8);
}

TEST(Rloo, LeavesOneOut) {
  expect_near(of_group("rloo", {1, 0, 0, 1}), {0.666667, -0.666667, -0.666667, 0.666667}, 5e-7);
  expect_near(of_group("rloo", {1, 2, 6}), {-3, -1.5, 4.5}, 1e-14);
  expect_near(of_group("rloo", {0.7}), {0.7}, 0);
}

TEST(Opo, TakesTheLengthWeightedBaseline) {
  std::vector<Response> batch;
  const std::size_t lengths[] = {2, 4, 6};
  const double rewards[] = {1, 0, 1};
  for (std::size_t i = 0; i < 3; ++i) {
    Response response{.group = 1, .rewards = std::vector<double>(lengths[i]), .mask = std::vector<std::uint8_t>(lengths[i], 1)};
    response.rewards.back() = rewards[i];
    batch.push_back(response);
  }
  expect_near(firsts(batch, {.adv_estimator = "opo"}), {1 - 0.666667, -0.666667, 1 - 0.666667}, 5e-7);
}

TEST(Gpg, ScalesByTheShareOfRewarded) { expect_near(of_group("gpg", {1, 0, 0, 1}), {1, -1, -1, 1}, 1e-15); }

TEST(PassK, RewardsTheLeadOfTheBestAlone) {
  const std::vector<double> got = of_group("grpo_passk", {1, 2, 6});
  expect_near(got, {0, 0, 4 / (2.6457513110645907 + 1e-6)}, 1e-12);
  expect_near(of_group("grpo_passk", {2, 2}), {0, 0}, 0);
}

TEST(PassK, RefusesAGroupOfOne) { EXPECT_EQ(advantages(group_of({1}), {.adv_estimator = "grpo_passk"}).error().code, ErrorCode::bad_input); }

TEST(Remax, SubtractsTheGreedyReward) {
  const std::vector<Response> batch = {{.group = 0, .rewards = {1, 5, 2, 4}, .mask = {1, 0, 1, 1}, .baseline = 3}};
  const Advantages got = advantages(batch, {.adv_estimator = "remax"}).value();
  EXPECT_THAT(got.returns[0], ElementsAre(7, 6, 6, 4));
  EXPECT_THAT(got.advantages[0], ElementsAre(4, 6, 3, 1));
}

TEST(ReinforcePlusPlus, DiscountsAndRestartsAtMaskedTokens) {
  const std::vector<Response> batch = {{.group = 0, .rewards = {0, 1, 0, 2}, .mask = {1, 1, 0, 1}}};
  const Advantages got = advantages(batch, {.adv_estimator = "reinforce_plus_plus", .gamma = 0.5}).value();
  EXPECT_THAT(got.returns[0], ElementsAre(0.5, 1, 1, 2));
  EXPECT_EQ(got.advantages[0][2], 0);
  // Mean 7/6, sample variance of {0.5, 1, 2} = 7/12.
  EXPECT_NEAR(got.advantages[0][3], (2 - 7.0 / 6) / 0.7637626158259734, 1e-7);
}

TEST(ReinforcePlusPlusBaseline, WhitensOverTokens) {
  const std::vector<Response> batch = {{.group = 0, .rewards = {0, 1}, .mask = {1, 1}}, {.group = 0, .rewards = {3}, .mask = {1}}};
  const Advantages got = advantages(batch, {.adv_estimator = "reinforce_plus_plus_baseline"}).value();
  // −1, −1, 1: mean −1/3, sample variance 4/3.
  EXPECT_NEAR(got.advantages[0][0], -0.5773502691896258, 1e-7);
  EXPECT_NEAR(got.advantages[1][0], 1.1547005383792515, 1e-7);
}

std::vector<Response> tool_response() {
  const std::vector<std::uint8_t> mask = {0, 0, 1, 1, 1, 0, 0, 1, 1, 0, 0};
  std::vector<double> values(11);
  const double critic[] = {4, 5, 6, 7, 9};
  std::size_t next = 0;
  for (std::size_t t = 0; t < 11; ++t) values[t] = mask[t] != 0 ? critic[next++] : 77;
  return {{.group = 0, .rewards = {0, 0, .1, .1, .1, 0, 0, .1, 1, 0, 0}, .mask = mask, .values = values}};
}

TEST(Gae, CarriesOverToolTokens) {
  const Advantages got = advantages(tool_response(), {.adv_estimator = "gae"}).value();
  const std::vector<double> raw = {-2.6, -3.7, -4.8, -5.9, -8}, returns = {1.4, 1.3, 1.2, 1.1, 1};
  const double mean = std::accumulate(raw.begin(), raw.end(), 0.0) / 5;
  double squares = 0;
  for (const double x : raw) squares += (x - mean) * (x - mean);
  const std::size_t at[] = {2, 3, 4, 7, 8};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(got.returns[0][at[i]], returns[i], 1e-14);
    EXPECT_NEAR(got.advantages[0][at[i]], (raw[i] - mean) / std::sqrt(squares / 4 + 1e-8), 1e-14);
  }
  EXPECT_EQ(got.advantages[0][5], 0);
}

TEST(Advantages, RefuseWhatTheyCannotCompute) {
  EXPECT_THAT(advantages(group_of({1}), {.adv_estimator = "grop"}).error().detail, HasSubstr("rloo"));
  EXPECT_EQ(advantages(group_of({1}), {.adv_estimator = "reinforce_plus_plus"}).error().code, ErrorCode::bad_input);
  EXPECT_EQ(advantages(group_of({1, 2}), {.adv_estimator = "gae"}).error().code, ErrorCode::bad_input);
  EXPECT_EQ(advantages(std::vector<Response>{{.group = 0, .rewards = {1, 2}, .mask = {1}}}, {}).error().code, ErrorCode::bad_input);
}

TEST(Rewards, PunishOverlongResponsesSoftly) {
  const std::uint64_t lengths[] = {10, 22, 25, 30};
  const double rewards[] = {1, .8, .6, .4}, wanted[] = {1, 0.6, 0.1, -0.6};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(rewards[i] + overlong_penalty(lengths[i], 25, 5, 0.5), wanted[i], 1e-15);
}

TEST(Rewards, AllEqualTeachNothing) {
  EXPECT_FALSE(is_informative(std::vector<double>{1, 1, 1}));
  EXPECT_TRUE(is_informative(std::vector<double>{1, 1, 0}));
  EXPECT_TRUE(is_informative(std::vector<double>{1}));
}

}  // namespace
}  // namespace troupe::models::rl
