#pragma once

// The world that a test file's tests share: joined before the first one, left in good order after the last one.

#include <gtest/gtest.h>

#include "transport/link_world.hpp"
#include "transport/world.hpp"

namespace troupe::testing {

inline std::unique_ptr<transport::World> joined;
inline KeepingSink sink;

class JoinedWorld : public ::testing::Environment {
  void SetUp() override {
    auto world = transport::World::join();
    ASSERT_TRUE(world) << world.error().detail;
    joined = std::move(*world);
    joined->link()->start(sink);
  }
  void TearDown() override {
    EXPECT_TRUE(joined->leave());
    EXPECT_EQ(sink.lost_count(), 0U) << "the end was orderly";
  }
};
inline const auto* const environment = ::testing::AddGlobalTestEnvironment(new JoinedWorld);

inline Rank own() { return joined->rank(); }
inline void barrier() { ASSERT_TRUE(joined->all_gather({})); }

}  // namespace troupe::testing
