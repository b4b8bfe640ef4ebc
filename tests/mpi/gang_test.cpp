// A learner of data 2 × tensor 2 trains to the bits of a trainer alone, wherever its members are.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/training/trainer.hpp"
#include "models/weights.hpp"
#include "mpi/stage.hpp"
#include "scheduler/gang.hpp"

namespace troupe::testing {
namespace {

using ::testing::HasSubstr;

models::ModelConfig small_model() {
  models::ModelConfig config{.vocab_size = 37, .hidden_size = 32, .intermediate_size = 48, .layers = 2, .heads = 8, .kv_heads = 4, .head_dim = 4};
  config.positions_max = 32;
  return config;
}

std::vector<models::TrainingSequence> batch(std::uint64_t step) {
  std::vector<models::TrainingSequence> sequences;
  for (std::uint32_t i = 0; i < 7; ++i) {
    models::TrainingSequence sequence;
    for (std::uint32_t t = 0; t < 3 + i; ++t) {
      sequence.tokens.push_back((i * 7 + t * 3 + static_cast<std::uint32_t>(step)) % 37);
      sequence.mask.push_back(t > 0 ? 1 : 0);
    }
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

struct TrainStep {
  using Reply = std::string;
  std::uint64_t step = 0;
  TROUPE_FIELDS(step)
};
/// Fails at member `member`.
struct Stumble {
  std::uint32_t member = 0;
  TROUPE_FIELDS(member)
};

class Member {
 public:
  Member() = default;
  explicit Member(scheduler::GangPlace place) : place_(std::move(place)) {}

  Result<std::string> train(const TrainStep& message) {
    if (!trainer_) {
      auto group = scheduler::open_communicator(place_);
      if (!group) return group.error();
      group_ = std::move(*group);
      tensor_ = std::move(*group_->split(place_.member / 2, place_.member % 2));
      data_ = std::move(*group_->split(place_.member % 2, place_.member / 2));
      auto trainer = models::Trainer::create(small_model(), models::initial_weights(small_model(), 3), {}, pool_, tensor_.get(), data_.get());
      if (!trainer) return trainer.error();
      trainer_ = std::move(*trainer);
    }
    if (auto done = trainer_->train_tokens(batch(message.step), 2); !done) return done.error();
    auto weights = trainer_->weights();
    if (!weights) return weights.error();
    return models::weights_digest(*weights).hex();
  }
  Result<> stumble(const Stumble& message) {
    if (message.member == place_.member) return Error{ErrorCode::actor_failed, "member " + std::to_string(place_.member) + " stumbled"};
    return {};
  }
  static void handlers(Handlers<Member>& on) { on.message<&Member::train>().message<&Member::stumble>(); }

 private:
  scheduler::GangPlace place_;
  models::ThreadPool pool_;
  std::unique_ptr<collectives::Communicator> group_, tensor_, data_;
  std::unique_ptr<models::Trainer> trainer_;
};
using Front = scheduler::GangFront<TrainStep, Stumble>;

std::string trained_alone(std::uint64_t steps) {
  models::ThreadPool pool;
  auto trainer = std::move(*models::Trainer::create(small_model(), models::initial_weights(small_model(), 3), {}, pool, nullptr, nullptr));
  for (std::uint64_t step = 0; step < steps; ++step) EXPECT_TRUE(trainer->train_tokens(batch(step), 7));
  return models::weights_digest(*trainer->weights()).hex();
}

/// Members dealt to the first `ranks` ranks; the front is on rank 0. Every rank calls it.
void spawn_gang(const std::string& name, std::uint32_t ranks) {
  scheduler::GangPlace place{.gang = name, .group = digest64(name)};
  std::vector<ActorRef> members;
  for (std::uint32_t i = 0; i < 4; ++i) {
    place.ranks.push_back(Rank{i % ranks});
    members.push_back(stage.on(i % ranks, scheduler::member_name(name, i)));
  }
  for (place.member = 0; place.member < 4; ++place.member) {
    if (place.ranks[place.member] != stage.rank()) continue;
    ASSERT_TRUE(stage.system->spawn<Member>(scheduler::member_name(name, place.member), scheduler::member_options(), place));
  }
  if (stage.is_first()) {
    ASSERT_TRUE(stage.system->spawn<Front>(name, members));
  }
}

TEST(GangOverRanks, GivesTheBitsOfOneTrainer) {
  for (std::uint32_t ranks = 1; ranks <= stage.size(); ++ranks) {
    const std::string name = "gang/" + std::to_string(ranks);
    spawn_gang(name, ranks);
    stage.barrier();
    if (stage.is_first()) {
      Result<std::string> digest;
      for (std::uint64_t step = 0; step < 3; ++step) digest = stage.ask<TrainStep>(stage.on(0, name), step);
      ASSERT_TRUE(digest) << digest.error().detail;
      EXPECT_EQ(*digest, trained_alone(3)) << ranks << " ranks";
    }
    stage.barrier();
  }
}

TEST(GangOverRanks, SaysWhichMemberFailed) {
  spawn_gang("stumbling", stage.size());
  stage.barrier();
  if (stage.is_first()) {
    EXPECT_THAT(stage.ask<Stumble>(stage.on(0, "stumbling"), 3U).error().detail, HasSubstr("member 3 stumbled"));
    EXPECT_TRUE(stage.ask<Stumble>(stage.on(0, "stumbling"), 9U));
  }
  stage.barrier();
}

}  // namespace
}  // namespace troupe::testing
