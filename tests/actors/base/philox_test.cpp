#include "actors/base/philox.hpp"

#include <gtest/gtest.h>

namespace troupe {
namespace {

using Words = std::array<std::uint32_t, 4>;

// Known answers of Random123's kat_vectors for philox4x32-10.
TEST(Philox, MatchesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}), (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, GivesEveryPartOfTheKeyItsOwnDraw) {
  const DrawKey base{.seed = 1, .purpose = Purpose::sample, .prompt = 2, .sample = 3, .position = 4};
  for (auto change : {+[](DrawKey& k) { k.seed = 9; }, +[](DrawKey& k) { k.purpose = Purpose::data; }, +[](DrawKey& k) { k.prompt = 9; },
                      +[](DrawKey& k) { k.sample = 9; }, +[](DrawKey& k) { k.position = 9; }}) {
    DrawKey other = base;
    change(other);
    EXPECT_NE(draw(other), draw(base));
  }
}

TEST(Philox, UniformStaysBelowItsBound) {
  EXPECT_LT(uniform_float(0xffffffff), 1.0F);
  EXPECT_LT(uniform_double(0xffffffff, 0xffffffff), 1.0);
  EXPECT_EQ(uniform_below(0xffffffff, 7), 6U);
  EXPECT_EQ(uniform_below(0, 7), 0U);
}

}  // namespace
}  // namespace troupe
