#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "actors/system.hpp"
#include "mpi/world.hpp"
#include "transport/world.hpp"

namespace troupe::testing {

/// The actor system of a test program under mpirun, one for all of its tests. Actors of different tests have different names.
struct Stage {
  std::unique_ptr<transport::World> world;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<System> system;

  Rank rank() const { return world->rank(); }
  std::uint32_t size() const { return world->size(); }
  bool is_first() const { return rank() == Rank{0}; }
  /// Returns when every rank has called it.
  void barrier() const { ASSERT_TRUE(world->all_gather({})); }
  ActorRef on(std::uint32_t rank, std::string_view name) const { return {actor_id(name), Rank{rank}}; }

  template <class M, class... Args>
  Result<reply_of<M>> ask(ActorRef to, Args&&... args) const {
    return system->ask<M>(to, std::forward<Args>(args)...).get();
  }
};

inline Stage stage;

class StageEnvironment : public ::testing::Environment {
  void SetUp() override {
    auto joined = transport::World::join();
    ASSERT_TRUE(joined) << joined.error().detail;
    stage.world = std::move(*joined);
    stage.executor = make_pool_executor(2);
    stage.system = std::make_unique<System>(*stage.executor, SystemOptions{.link = stage.world->link()});
  }
  void TearDown() override {
    stage.barrier();
    stage.system.reset();
    EXPECT_TRUE(stage.world->leave());
  }
};
inline const auto* const stage_environment = ::testing::AddGlobalTestEnvironment(new StageEnvironment);

}  // namespace troupe::testing
