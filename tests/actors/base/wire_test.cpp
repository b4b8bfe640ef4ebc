#include "actors/base/wire.hpp"


#include <gtest/gtest.h>

#include "actors/base/fields.hpp"

namespace troupe {
namespace {

enum class Colour : std::uint8_t { red = 1, blue = 2 };

struct Inner {
  std::optional<std::string> note;
  std::variant<int, std::string> either;
  TROUPE_FIELDS(note, either)
  bool operator==(const Inner&) const = default;
};

struct Everything {
  int number = 0;
  Colour colour = Colour::red;
  std::vector<float> floats;
  std::vector<bool> flags;
  std::vector<Inner> inners;
  std::map<std::string, std::uint64_t> counts;
  std::array<std::int16_t, 3> triple{};
  std::pair<int, double> pair;
  std::shared_ptr<const std::string> shared;
  Bytes bytes;
  std::chrono::nanoseconds wait{};
  TROUPE_FIELDS(number, colour, floats, flags, inners, counts, triple, pair, shared, bytes, wait)
};

Everything sample() {
  Everything e{.number = -7, .colour = Colour::blue, .floats = {1.5F, -2.F}, .flags = {true, false, true}, .inners = {}, .counts = {{"a", 1}, {"b", 2}},
               .triple = {1, 2, 3}, .pair = {4, 0.25}, .shared = std::make_shared<std::string>("shared"), .bytes = {std::byte{9}}, .wait = std::chrono::seconds(3)};
  e.inners.push_back({.note = "x", .either = 3});
  e.inners.push_back({.note = std::nullopt, .either = "y"});
  return e;
}

Bytes sample_bytes() {
  Bytes out;
  encode(out, sample());
  return out;
}

TEST(Wire, RoundTripsEveryKindOfField) {
  auto back = decode<Everything>(sample_bytes());
  ASSERT_TRUE(back) << back.error().detail;
  EXPECT_EQ(back->inners, sample().inners);
  EXPECT_EQ(back->counts, sample().counts);
  EXPECT_EQ(*back->shared, "shared");
  Bytes again;
  encode(again, *back);
  EXPECT_EQ(again, sample_bytes());
}

TEST(Wire, RefusesEveryTruncation) {
  const Bytes whole = sample_bytes();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    auto result = decode<Everything>(BytesView(whole).first(length));
    ASSERT_FALSE(result) << length;
    EXPECT_EQ(result.error().code, ErrorCode::corrupt);
  }
}

TEST(Wire, SurvivesEveryFlippedByte) {
  const Bytes whole = sample_bytes();
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Bytes flipped = whole;
    flipped[at] ^= std::byte{0xFF};
    refused += decode<Everything>(flipped) ? 0 : 1;
  }
  EXPECT_GT(refused, 10U);
}

TEST(Wire, RefusesALengthThatMemoryCouldNotHold) {
  Bytes lie;
  WireWriter writer(lie);
  writer.size(0);
  writer.size(~std::uint64_t{0});
  auto result = decode<std::vector<double>>(lie);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().detail.find("longer than the bytes"), std::string::npos);
}

TEST(Wire, DigestIgnoresWhichNaNItIs) {
  const double other_nan = std::bit_cast<double>(std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN()) | 5);
  EXPECT_EQ(content_digest64(std::vector{1.0, other_nan}), content_digest64(std::vector{1.0, std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_EQ(content_digest64(other_nan), content_digest64(std::numeric_limits<double>::quiet_NaN()));
}

TEST(Wire, DigestSeesTheSignOfZero) { EXPECT_NE(content_digest64(0.0F), content_digest64(-0.0F)); }

/// The example of actors/base/wire.md.
struct Example {
  int amount = 5;
  std::string why = "hi";
  std::vector<float> at{1.0F};
  TROUPE_FIELDS(amount, why, at)
};

TEST(Wire, HasTheBytesOfItsDocument) {
  Bytes bytes;
  encode(bytes, Example{});
  std::vector<unsigned> values;
  for (const std::byte each : bytes) values.push_back(std::to_integer<unsigned>(each));
  EXPECT_EQ(values, (std::vector<unsigned>{5, 0, 0, 0, 2, 'h', 'i', 0, 1, 0, 0, 0x80, 0x3f}));
}

}  // namespace
}  // namespace troupe
