#include "transport/collectives/nccl_communicator.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace troupe::collectives {
namespace {

using ::testing::HasSubstr;

TEST(NcclCommunicator, RefusesAnIdThatIsNone) {
  const auto opened = open_nccl_communicator(Bytes(3), 0, 1);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().detail, HasSubstr(has_nccl() ? "want 128 bytes, got 3" : "this build has none"));
}

TEST(NcclCommunicator, AGroupOfOneGivesBackWhatItTook) {
  if (!has_nccl()) GTEST_SKIP() << "this build has no NCCL";
  const auto id = make_nccl_id();
  if (!id) GTEST_SKIP() << "no GPU: " << id.error().detail;
  auto opened = open_nccl_communicator(*id, 0, 1);
  if (!opened) GTEST_SKIP() << "no GPU: " << opened.error().detail;
  std::vector<float> data{1.5F, -2.25F, 3.0F};
  ASSERT_TRUE((*opened)->all_reduce_sum(data));
  EXPECT_EQ(data, (std::vector<float>{1.5F, -2.25F, 3.0F}));
  EXPECT_TRUE((*opened)->barrier());
  const auto gathered = (*opened)->all_gather_variable(Bytes(5));
  ASSERT_TRUE(gathered);
  EXPECT_EQ(gathered->at(0).size(), 5U);
}

}  // namespace
}  // namespace troupe::collectives
