#include "jobs/config/config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobs/config/binder.hpp"

namespace troupe::jobs {
namespace {

using ::testing::HasSubstr;

Result<JobConfig> parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  auto settings = parse_job_text(text, "job.toml", "/jobs");
  if (!settings) return settings.error();
  if (auto done = add_overrides(overrides, *settings); !done) return done.error();
  return make_job(*settings);
}

const std::string kGrpo = "job = \"grpo\"\nmodel.path = \"start\"\n";

GrpoConfig grpo(const std::vector<std::string>& overrides = {}) { return std::get<GrpoConfig>(*parse(kGrpo, overrides)); }

std::string refusal(const std::vector<std::string>& overrides, const std::string& text = kGrpo) {
  auto config = parse(text, overrides);
  if (config) return "accepted";
  EXPECT_EQ(config.error().code, ErrorCode::bad_input);
  EXPECT_EQ(config.error().detail.find('\n'), std::string::npos);
  return config.error().detail;
}

TEST(Config, ReadsTablesAndDottedKeysAlike) {
  const auto config = std::get<GrpoConfig>(*parse(kGrpo + "[rollout]\nn = 3\n[actor.optim]\nlr = 2e-3\n"));
  EXPECT_EQ(config.rollout.n, 3U);
  EXPECT_EQ(config.actor.optim.lr, 2e-3);
}

TEST(Config, LetsTheLastOverrideWin) { EXPECT_EQ(grpo({"rollout.n=3", "rollout.n=5"}).rollout.n, 5U); }

TEST(Config, ReadsOverridesAsTheKeysTypeHasIt) {
  EXPECT_EQ(grpo({"actor.grad_clip=2"}).actor.grad_clip, 2.0);
  EXPECT_TRUE(grpo({"actor.use_kl_loss=true"}).actor.use_kl_loss);
  EXPECT_EQ(grpo({"seed=9007199254740992"}).common.seed, 9007199254740992U);
}

TEST(Config, TakesPathsRelativeToTheFileThatNamesThem) {
  EXPECT_EQ(grpo().common.model_path, "/jobs/start");
  EXPECT_EQ(grpo({"model.path=m"}).common.model_path, std::filesystem::current_path() / "m");
}

TEST(Config, NamesTheNearestKeyOfAnUnknownOne) {
  EXPECT_THAT(refusal({"lerner.micro_batch=2"}), HasSubstr("lerner.micro_batch\": no such key (command line); did you mean learner.micro_batch?"));
}

TEST(Config, SaysKeyGotAndAllowedOfABadValue) {
  EXPECT_EQ(refusal({"learner.micro_batch=-2"}), "learner.micro_batch: want a whole number from 1 to 65536, got -2 (command line)");
  EXPECT_EQ(refusal({"learner.tensor_parallel=3"}), "learner.tensor_parallel: want one of 1, 2, 4, 8, got 3 (command line)");
  EXPECT_EQ(refusal({}, kGrpo + "rollout.top_p = 0\n"), "rollout.top_p: want a number above 0 and at most 1, got 0 (job.toml:3)");
  EXPECT_THAT(refusal({"record.level=ful"}), HasSubstr("did you mean full?"));
}

TEST(Config, RefusesValuesOfAnotherType) {
  EXPECT_THAT(refusal({"steps=many"}), HasSubstr("got \"many\""));
  EXPECT_THAT(refusal({"steps=1.5"}), HasSubstr("steps: want a whole number"));
  EXPECT_THAT(refusal({}, kGrpo + "steps = true\n"), HasSubstr("got true (job.toml:3)"));
  EXPECT_THAT(refusal({}, kGrpo + "steps = [1]\n"), HasSubstr("got an array"));
  EXPECT_THAT(refusal({"actor.grad_clip=nan"}), HasSubstr("actor.grad_clip"));
  EXPECT_THAT(refusal({"steps=99999999999999999999"}), HasSubstr("steps: want a whole number"));
}

TEST(Config, RefusesWhatIsNoJobFile) {
  EXPECT_THAT(refusal({}, ""), HasSubstr("job.toml: want a job file, got one without any key"));
  EXPECT_THAT(refusal({}, "steps = 3\n"), HasSubstr("job: missing; want one of grpo, sft"));
  EXPECT_THAT(refusal({}, "job = \"gpro\"\n"), HasSubstr("did you mean grpo?"));
  EXPECT_THAT(refusal({}, "\x01\x02 = \n"), HasSubstr("job.toml:1: want TOML"));
  EXPECT_THAT(refusal({"steps"}), HasSubstr("want key=value"));
  EXPECT_THAT(read_job("/nowhere/none.toml").error().detail, HasSubstr("/nowhere/none.toml: want a job file, got none there"));
  EXPECT_THAT(read_job("/tmp").error().detail, HasSubstr("got a folder"));
}

TEST(Config, RefusesWhatNoSingleKeyCanSay) {
  EXPECT_THAT(refusal({}, "job = \"grpo\"\n"), HasSubstr("model.path: missing"));
  EXPECT_THAT(refusal({"learner.data_parallel=9", "data.train_batch_size=1"}), HasSubstr("learner.data_parallel: want at most"));
  EXPECT_THAT(refusal({"model.init.kv_heads=3"}, "job = \"sft\"\ndata.path = \"d\"\n"), HasSubstr("want a divisor of model.init.heads"));
}

TEST(Config, GivesLayoutsOneDigest) {
  const auto base = config_digest(grpo());
  for (const char* layout : {"threads=3", "simd=avx2", "rollout.actors=3", "rollout.tensor_parallel=2", "rollout.batch_max=3", "learner.data_parallel=2",
                             "learner.tensor_parallel=2", "learner.micro_batch=1", "record.level=full", "checkpoint.every=1", "checkpoint.keep=1", "reward.actors=2"}) {
    EXPECT_EQ(config_digest(grpo({layout})), base) << layout;
    EXPECT_FALSE(first_difference(grpo(), grpo({layout}))) << layout;
  }
}

TEST(Config, GivesOtherSettingsOtherDigests) {
  for (const char* setting : {"seed=2", "steps=7", "rollout.n=3", "actor.optim.lr=0.1", "algorithm.adv_estimator=rloo"}) {
    EXPECT_NE(config_digest(grpo({setting})), config_digest(grpo())) << setting;
  }
}

TEST(Config, FindsTheFirstDifference) {
  const auto difference = first_difference(grpo({"seed=1", "rollout.n=3"}), grpo({"seed=4", "rollout.n=5"}));
  ASSERT_TRUE(difference);
  EXPECT_EQ(difference->key, "rollout.n");
  EXPECT_EQ(difference->left, "3");
  EXPECT_EQ(difference->right, "5");
  EXPECT_EQ(first_difference(grpo(), *parse("job = \"sft\"\ndata.path = \"d\"\n"))->key, "job");
}

TEST(Config, WritesAJobFileThatReadsBackTheSame) {
  const JobConfig config = grpo({"rollout.n=3", "actor.optim.lr=1.25e-5", "actor.use_kl_loss=true"});
  const auto again = parse(job_file_text(config));
  ASSERT_TRUE(again);
  EXPECT_EQ(job_file_text(*again), job_file_text(config));
  EXPECT_EQ(config_digest(*again), config_digest(config));
}

TEST(Config, DescribesEveryKeyOnce) {
  for (const char* job : {"sft", "grpo"}) {
    std::string before;
    for (const auto& [key, value] : schema(job)) {
      EXPECT_LT(before, key.name);
      EXPECT_FALSE(key.about.empty() || key.allowed().empty()) << key.name;
      before = key.name;
    }
  }
}

TEST(Config, MeasuresEditDistance) {
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("steps", "step"), 1U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

}  // namespace
}  // namespace troupe::jobs
