#include "models/tokenizer.hpp"

#include <gtest/gtest.h>

#include "models/reference.hpp"

namespace troupe::models {
namespace {

const Tokenizer& with_begin() {
  static const Tokenizer tokenizer({"<|end|>", "<|begin|>", "<|begin|>x"}, 257);
  return tokenizer;
}
using Ids = std::vector<TokenId>;

TEST(Tokenizer, GivesEachByteItsOwnId) {
  std::string all;
  Ids ids;
  for (TokenId byte = 0; byte < 256; ++byte) {
    all.push_back(static_cast<char>(byte));
    ids.push_back(byte);
  }
  EXPECT_EQ(Tokenizer::bytes().encode(all), ids);
  EXPECT_EQ(Tokenizer::bytes().encode("1+é"), (Ids{'1', '+', 0xC3, 0xA9}));
}

TEST(Tokenizer, FindsSpecialTokensLongestFirst) {
  EXPECT_EQ(with_begin().encode("a<|end|><|begin|>x", {.add_special = false}), (Ids{'a', 256, 258}));
  EXPECT_EQ(with_begin().encode("<|begin|>y<|end|", {.add_special = false}), (Ids{257, 'y', '<', '|', 'e', 'n', 'd', '|'}));
}

TEST(Tokenizer, AddsTheBeginTokenUnlessToldNotTo) {
  EXPECT_EQ(with_begin().encode("a"), (Ids{257, 'a'}));
  EXPECT_EQ(with_begin().encode(""), (Ids{257}));
  EXPECT_EQ(with_begin().encode("a", {.add_special = false}), (Ids{'a'}));
  EXPECT_EQ(Tokenizer::bytes().encode(""), Ids{});
}

TEST(Tokenizer, TakesSpecialTokensAsPlainTextWhenLiteral) {
  EXPECT_EQ(Tokenizer::bytes().encode("<|endoftext|>", {.literal = true}).size(), 13U);
  EXPECT_EQ(Tokenizer::bytes().encode("<|endoftext|>").size(), 1U);
}

TEST(Tokenizer, DecodesWhatItEncodes) {
  const std::string text = "1+1=2 héllo \xF0\x9F\x98\x80\n<|end|>";
  EXPECT_EQ(with_begin().decode(with_begin().encode(text, {.add_special = false})).value(), text);
  EXPECT_EQ(with_begin().decode(with_begin().encode(text), true).value(), text.substr(0, text.size() - 7));
}

TEST(Tokenizer, RefusesIdsThatItDoesNotHave) {
  EXPECT_EQ(Tokenizer::bytes().decode(Ids{257}).error().code, ErrorCode::bad_input);
  EXPECT_NE(Tokenizer::bytes().decode(Ids{257}).error().detail.find("0 to 256, got 257"), std::string::npos);
}

// Expectations are Python's bytes.decode("utf-8", "replace").
TEST(LossyUtf8, ReplacesEachMaximalPartOnce) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(lossy_utf8("a\xC3"), "a" + bad);
  EXPECT_EQ(lossy_utf8("\xE2\x82"), bad);
  EXPECT_EQ(lossy_utf8("\xE2\x82z"), bad + "z");
  EXPECT_EQ(lossy_utf8("\xF0\x9F\x98"), bad);
  EXPECT_EQ(lossy_utf8("\xC0\x80"), bad + bad);
  EXPECT_EQ(lossy_utf8("\xED\xA0\x80"), bad + bad + bad);
  EXPECT_EQ(lossy_utf8("\xF4\x90\x80\x80"), bad + bad + bad + bad);
  EXPECT_EQ(lossy_utf8("\xF5\xFF"), bad + bad);
  EXPECT_EQ(lossy_utf8("\x80\xE0\x9F\x80"), bad + bad + bad + bad);
  EXPECT_EQ(lossy_utf8("\xF0\x90\x80\xC3\xA9"), bad + "é");
}

TEST(TokenizerFile, ReadsBackWhatItWrites) {
  EXPECT_EQ(Tokenizer::parse(Tokenizer::bytes().json(), "t").value(), Tokenizer::bytes());
  EXPECT_EQ(Tokenizer::parse(with_begin().json(), "t").value(), with_begin());
  const testing::ScratchFolder folder;
  ASSERT_TRUE(with_begin().save(folder.path()));
  EXPECT_EQ(Tokenizer::load(folder.path()).value(), with_begin());
  EXPECT_EQ(Tokenizer::load(folder.path() / "tokenizer.json").value(), with_begin());
}

TEST(TokenizerFile, RefusesEveryTruncation) {
  const std::string text = with_begin().json();
  for (std::size_t length = 0; length + 1 < text.size(); ++length) ASSERT_FALSE(Tokenizer::parse(text.substr(0, length), "t")) << length;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(TokenizerFile, RefusesOtherTokenizersByName) {
  const std::string text = Tokenizer::bytes().json();
  const auto refused = [&](const std::string& from, const std::string& to, std::string_view said) {
    const auto parsed = Tokenizer::parse(replaced(text, from, to), "tokenizer.json");
    ASSERT_FALSE(parsed) << said;
    EXPECT_EQ(parsed.error().code, ErrorCode::unsupported);
    EXPECT_NE(parsed.error().detail.find(said), std::string::npos) << parsed.error().detail;
  };
  refused("\"merges\":[]", "\"merges\":[\"a b\",\"c d\"]", "2 merges");
  refused("\"type\":\"BPE\"", "\"type\":\"Unigram\"", "Unigram");
  refused("\"normalizer\":null", "\"normalizer\":{\"type\":\"NFC\"}", "NFC");
  refused("\"!\":33", "\"!\":34", "model.vocab");
  refused("\"id\":256", "\"id\":300", "added_tokens");
  refused("\"special\":true", "\"special\":false", "added_tokens");
  refused("\"add_prefix_space\":false", "\"add_prefix_space\":true", "add_prefix_space");
  refused("\"post_processor\":null", "\"post_processor\":{\"type\":\"ByteLevel\"}", "post_processor");
}

TEST(TokenizerFile, AdvisesWhenAFolderHasNone) {
  const auto loaded = Tokenizer::load(testing::data_folder() / "llama");
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::bad_input);
  EXPECT_NE(loaded.error().detail.find("token_ids"), std::string::npos);
}

}  // namespace
}  // namespace troupe::models
