#include "jobs/sft/examples.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobs/folders.hpp"

namespace troupe::jobs {
namespace {

using ::testing::HasSubstr;
using Ids = std::vector<models::TokenId>;
using Mask = std::vector<std::uint8_t>;

Result<std::vector<models::TrainingSequence>> examples_of(const std::string& lines, std::uint32_t max_length = 8) {
  const TemporaryFolder folder;
  return read_examples(folder.write("data.jsonl", lines), models::Tokenizer::bytes(), max_length);
}

TEST(Examples, LearnsTheResponseAndItsEndToken) {
  const auto examples = examples_of("{\"prompt\": \"1=\", \"response\": \"1\"}\n");
  ASSERT_TRUE(examples);
  EXPECT_EQ(examples->at(0).tokens, (Ids{'1', '=', '1', 256}));
  EXPECT_EQ(examples->at(0).mask, (Mask{0, 0, 1, 1}));
}

TEST(Examples, PacksTextsIntoFullLengths) {
  const auto examples = examples_of("{\"text\": \"abc\"}\n{\"text\": \"de\"}\n", 4);
  ASSERT_TRUE(examples);
  ASSERT_EQ(examples->size(), 2U);
  EXPECT_EQ(examples->at(0).tokens, (Ids{'a', 'b', 'c', 256}));
  EXPECT_EQ(examples->at(1).tokens, (Ids{256, 'd', 'e', 256}));
}

TEST(Examples, RefusesALineByItsNumber) {
  EXPECT_THAT(examples_of("{\"prompt\": \"1\", \"response\": \"1\"}\n{\"answer\": 1}\n").error().detail, HasSubstr("data.jsonl:2: want \"prompt\" and \"response\", or \"text\""));
  EXPECT_THAT(examples_of("{\"prompt\": \"1234\", \"response\": \"5678\"}\n").error().detail, HasSubstr("want at most data.max_length = 8 tokens, got 9"));
  EXPECT_THAT(examples_of("{\"prompt\": \"\", \"response\": \"1\"}\n").error().detail, HasSubstr("prompt: want at least one token"));
  EXPECT_THAT(examples_of("nonsense\n").error().detail, HasSubstr("data.jsonl:1: want a JSON object"));
  EXPECT_THAT(examples_of("\n").error().detail, HasSubstr("want at least one example"));
}

}  // namespace
}  // namespace troupe::jobs
