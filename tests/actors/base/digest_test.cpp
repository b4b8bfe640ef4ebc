#include "actors/base/digest.hpp"

#include <gtest/gtest.h>

#include <span>
#include <string>

namespace troupe {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Digest, PrintsEmptyInputAsXxh128sumDoes) { EXPECT_EQ(digest128({}).hex(), "99aa06d3014798d86001c324468d497f"); }

TEST(Digest, ReadsBackItsHexForm) {
  const Digest128 digest = digest128(bytes_of("troupe"));
  EXPECT_EQ(Digest128::from_hex(digest.hex()), digest);
}

TEST(Digest, RefusesOtherHexForms) {
  EXPECT_FALSE(Digest128::from_hex(""));
  EXPECT_FALSE(Digest128::from_hex("99aa06d3014798d86001c324468d497"));
  EXPECT_FALSE(Digest128::from_hex("99aa06d3014798d86001c324468d497g"));
}

TEST(Digest, DoesNotDependOnHowTheBytesAreCut) {
  const std::string text(1000, 'x');
  for (std::size_t cut : {0U, 1U, 63U, 999U, 1000U}) {
    Digester digester;
    digester.add(text.substr(0, cut));
    digester.add(text.substr(cut));
    EXPECT_EQ(digester.digest(), digest128(bytes_of(text))) << cut;
  }
}

TEST(Crc32c, MatchesThePublishedCheckValue) { EXPECT_EQ(crc32c(bytes_of("123456789")), 0xE3069283U); }

TEST(Crc32c, ContinuesFromASeed) {
  EXPECT_EQ(crc32c(bytes_of("56789"), crc32c(bytes_of("1234"))), crc32c(bytes_of("123456789")));
}

}  // namespace
}  // namespace troupe
