#include "scheduler/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduler/machines.hpp"

namespace troupe::scheduler {
namespace {

using ::testing::HasSubstr;
using testing::host_of;
using testing::kGiB;
using testing::machines;
using testing::several;

std::vector<Request> job() {
  auto requests = several(2, "learner", {.cpu_thousandths = 500, .gpu_thousandths = kWhole, .memory_bytes = 2 * kGiB, .is_gang_member = true});
  requests.push_back({.name = "director", .rank = Rank{0}});
  return requests;
}

TEST(Plan, PrintsWhoRunsWhere) {
  const auto plan = make_plan(machines(2, 1, host_of(8, 64 * kGiB, 1)), job()).value();
  EXPECT_EQ(print_table(plan), R"(ACTOR      RANK  HOST  CPUS  MEMORY   GPUS
learner/0  1     b     0.5   2.0 GiB  GPU-b0
learner/1  0     a     0.5   2.0 GiB  GPU-a0
director   0     a     -     -        -

gang learner: 2 members, communicator nccl

HOST  RANKS  CPUS USED  MEMORY USED          GPUS USED
a     0      0.5 of 8   2.0 GiB of 64.0 GiB  1 of 1
b     1      0.5 of 8   2.0 GiB of 64.0 GiB  1 of 1
)");
}

TEST(Plan, PrintsTheSameAsJson) {
  const auto plan = make_plan(machines(1, 2, host_of(2, 8 * kGiB, 0)), {{.name = "director", .cpu_thousandths = 250, .rank = Rank{1}}}).value();
  EXPECT_EQ(print_json(plan),
            R"({"hosts":[{"name":"a","ranks":[0,1],"cpus":2,"cpus_used":2.5E-1,"memory_bytes":8589934592,"memory_bytes_used":0,"gpus":[]}],)"
            R"("actors":[{"name":"director","rank":1,"host":"a","cpus":2.5E-1,"memory_bytes":0,"gpus_share":0E0,"gpus":[]}],"gangs":[],"refused":[]})");
}

TEST(Plan, AnswersByName) {
  const auto plan = make_plan(machines(2, 1, host_of(8, 64 * kGiB, 1)), job()).value();
  EXPECT_EQ(plan.rank_of("director"), Rank{0});
  EXPECT_EQ(plan.gpus_of("learner/1").size(), 1U);
  EXPECT_EQ(plan.members_of("learner").size(), 2U);
}

TEST(Plan, IsRefusedWithEveryReason) {
  const auto refused = make_plan(machines(1, 1, host_of(8)), job());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::resource_short);
  EXPECT_THAT(refused.error().detail, HasSubstr("learner/0: host a: gpus: want 1, 0 of the 0 that rank 0 sees left"));
  const Plan plan = make_plan_with_refusals(machines(1, 1, host_of(8)), job());
  EXPECT_THAT(print_table(plan), HasSubstr("no place: learner/0: host a: gpus"));
  EXPECT_THAT(print_json(plan), HasSubstr(R"("refused":[{"name":"learner/0","reason":"learner/0: host a: gpus)"));
}

TEST(Plan, RefusesTwoActorsOfOneName) {
  EXPECT_THAT(make_plan(machines(1, 1, host_of(8)), {{.name = "x"}, {.name = "x"}}).error().detail, HasSubstr("got two for x"));
}

}  // namespace
}  // namespace troupe::scheduler
