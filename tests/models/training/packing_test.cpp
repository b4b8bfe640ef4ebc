#include "models/training/packing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace troupe::models {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

TEST(ExampleOrder, DrawsEveryExampleOnceAnEpoch) {
  ExampleOrder order(5, 1);
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::uint64_t> drawn;
    for (std::uint64_t i = 0; i < 5; ++i) drawn.push_back(order.example(epoch * 5 + i));
    EXPECT_THAT(drawn, UnorderedElementsAre(0, 1, 2, 3, 4)) << epoch;
  }
}

TEST(ExampleOrder, IsAFunctionOfItsDrawAlone) {
  ExampleOrder forwards(100, 7), again(100, 7), other_seed(100, 8);
  const auto late = forwards.step(25, 8);
  std::vector<std::vector<std::uint64_t>> all;
  for (std::uint64_t step = 0; step <= 25; ++step) all.push_back(again.step(step, 8));
  EXPECT_EQ(all[25], late);
  EXPECT_NE(all[0], all[13]);
  EXPECT_NE(other_seed.step(25, 8), late);
}

TEST(ExampleOrder, EpochsHaveShufflesOfTheirOwn) {
  ExampleOrder order(50, 3);
  EXPECT_NE(order.step(0, 50), order.step(1, 50));
}

TEST(ExampleOrder, StepsCrossEpochs) {
  ExampleOrder order(3, 0);
  const auto step = order.step(1, 2);
  EXPECT_EQ(step[0], order.example(2));
  EXPECT_EQ(step[1], order.example(3));
}

std::size_t tokens_between(const std::vector<std::size_t>& order, const std::vector<std::size_t>& lengths, std::size_t begin, std::size_t end) {
  std::size_t sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += lengths[order[i]];
  return sum;
}

TEST(BalancedOrder, NamesEverySequenceOnce) {
  for (std::size_t count = 0; count < 20; ++count) {
    auto order = balanced_order(std::vector<std::size_t>(count, 5));
    std::ranges::sort(order);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(order[i], i);
  }
}

TEST(BalancedOrder, HalvesAndQuartersHoldAboutAsManyTokens) {
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < 64; ++i) lengths.push_back(1 + i * i % 211 + (i % 7 == 0 ? 300 : 0));
  const auto order = balanced_order(lengths);
  const std::size_t total = tokens_between(order, lengths, 0, 64);
  for (const std::size_t parts : {2U, 4U}) {
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t held = tokens_between(order, lengths, 64 * part / parts, 64 * (part + 1) / parts);
      EXPECT_NEAR(static_cast<double>(held * parts) / static_cast<double>(total), 1, 0.05) << part << " of " << parts;
    }
  }
}

TEST(Packing, InstructionsCountTheResponse) {
  const std::vector<TokenId> prompt = {5, 6}, response = {7, 8, 9};
  const TrainingSequence got = instruction(prompt, response);
  EXPECT_THAT(got.tokens, ElementsAre(5, 6, 7, 8, 9));
  EXPECT_THAT(got.mask, ElementsAre(0, 0, 1, 1, 1));
  EXPECT_THAT(instruction({}, response).mask, ElementsAre(0, 1, 1));
}

TEST(Packing, StreamsLearnEveryTokenButTheFirstOnce) {
  for (std::size_t size = 0; size < 20; ++size) {
    std::vector<TokenId> stream(size);
    for (std::size_t i = 0; i < size; ++i) stream[i] = static_cast<TokenId>(i);
    std::vector<TokenId> learnt;
    for (const TrainingSequence& each : cut_stream(stream, 5)) {
      EXPECT_LE(each.tokens.size(), 5U);
      EXPECT_EQ(each.mask[0], 0);
      for (std::size_t t = 0; t < each.tokens.size(); ++t) {
        if (each.mask[t] != 0) learnt.push_back(each.tokens[t]);
      }
    }
    if (size > 0) stream.erase(stream.begin());
    EXPECT_EQ(learnt, stream);
  }
}

}  // namespace
}  // namespace troupe::models
