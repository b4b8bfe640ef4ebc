#include "transport/world.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>

namespace troupe::testing {
namespace {

using transport::World;

/// A process that no launcher started, whatever started the tests.
class NoLauncher : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"}) unsetenv(name);
  }
};

TEST_F(NoLauncher, MakesAWorldOfOneRankWithoutLinkAndMpi) {
  const auto world = World::join();
  ASSERT_TRUE(world) << world.error().detail;
  EXPECT_EQ((*world)->rank(), Rank{0});
  EXPECT_EQ((*world)->size(), 1U);
  EXPECT_EQ((*world)->link(), nullptr);
  EXPECT_EQ((*world)->hosts().size(), 1U);
  int initialised = 1;
  MPI_Initialized(&initialised);
  EXPECT_EQ(initialised, 0);
  EXPECT_TRUE((*world)->leave());
}

TEST_F(NoLauncher, GathersTheOnlyRanksBytes) {
  const auto world = World::join();
  ASSERT_TRUE(world);
  const Bytes mine{std::byte{1}, std::byte{2}};
  const auto all = (*world)->all_gather(mine);
  ASSERT_TRUE(all);
  EXPECT_EQ(*all, std::vector<Bytes>{mine});
}

TEST_F(NoLauncher, RefusesASlurmStepThatWouldRunTheJobManyTimes) {
  setenv("SLURM_STEP_NUM_TASKS", "4", 1);
  const auto world = World::join();
  ASSERT_FALSE(world);
  EXPECT_EQ(world.error().code, ErrorCode::unsupported);
  EXPECT_NE(world.error().detail.find("--mpi=pmix"), std::string::npos);
}

}  // namespace
}  // namespace troupe::testing
