#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <boost/json.hpp>
#include <csignal>
#include <sstream>

#include "jobs/child.hpp"
#include "jobs/folders.hpp"
#include "models/config.hpp"
#include "models/parameters.hpp"
#include "models/weights.hpp"

namespace troupe::jobs {
namespace {

using ::testing::HasSubstr;
namespace json = boost::json;
namespace fs = std::filesystem;

Ended troupe(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), TROUPE_BINARY_DIR "/bin/troupe");
  return Child(std::move(arguments)).end();
}

/// One line on stderr, nothing on stdout, exit code 2.
std::string refusal(std::vector<std::string> arguments) {
  const Ended ended = troupe(std::move(arguments));
  EXPECT_EQ(ended.code, 2) << ended.err;
  EXPECT_EQ(ended.out, "");
  EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
  return ended.err;
}

std::vector<json::object> lines_of(const std::string& text) {
  std::vector<json::object> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(json::parse(line).as_object());
  return lines;
}

/// A small random model with a tokenizer.
class CommandLine : public ::testing::Test {
 protected:
  CommandLine() {
    const auto tokenizer = models::Tokenizer::bytes();
    models::ModelConfig config{.vocab_size = tokenizer.size(), .hidden_size = 16, .intermediate_size = 32, .layers = 1, .heads = 2, .kv_heads = 1, .head_dim = 8, .positions_max = 64};
    config.initializer_range = 0.5;
    config.eos_token_ids = {tokenizer.end()};
    const auto weights = models::initial_weights(config, 3);
    digest_ = models::weights_digest(weights).hex();
    EXPECT_TRUE(models::save_model_folder(model(), config, weights, &tokenizer));
  }
  std::string model() const { return (folder_.path() / "model").string(); }
  std::string path(const char* name) const { return (folder_.path() / name).string(); }

  TemporaryFolder folder_;
  std::string digest_;
};

TEST_F(CommandLine, HelpsWithEveryCommand) {
  EXPECT_THAT(troupe({"--help"}).out, HasSubstr("generate"));
  for (const char* command : {"run", "replay", "plan", "inspect", "digest", "export", "generate", "score", "tokenize", "detokenize", "recover"}) {
    const Ended ended = troupe({command, "--help"});
    EXPECT_EQ(ended.code, 0) << command;
    EXPECT_THAT(ended.out, HasSubstr("Usage: troupe " + std::string(command)));
  }
  EXPECT_THAT(troupe({"run", "--help"}).out, HasSubstr("learner.micro_batch"));
}

TEST_F(CommandLine, RefusesWhatItDoesNotHaveByName) {
  EXPECT_THAT(refusal({}), HasSubstr("want a command"));
  EXPECT_THAT(refusal({"fly"}), HasSubstr("fly: no such command"));
  EXPECT_THAT(refusal({"generat"}), HasSubstr("did you mean generate?"));
  EXPECT_THAT(refusal({"run", "job.toml", "--fast"}), HasSubstr("--fast"));
  for (const char* later : {"render", "debug", "dap", "fork", "diff", "bisect", "timeline", "inspect-tensor", "status", "models"}) {
    EXPECT_THAT(refusal({later, "RUN", "--step", "3"}), HasSubstr(std::string(later) + ": this build does not have the command"));
  }
  EXPECT_THAT(refusal({"detokenize", model(), "--ids", "1", "--stream"}), HasSubstr("--stream"));
  EXPECT_THAT(refusal({"replay", "RUN", "--actor", "x"}), HasSubstr("--actor"));
  folder_.write("m.gguf", "GGUF");
  EXPECT_THAT(refusal({"digest", path("m.gguf")}), HasSubstr("GGUF"));
  const auto chat = folder_.write("chat.jsonl", "{\"messages\": []}\n").string();
  EXPECT_THAT(refusal({"generate", model(), "--prompts", chat}), HasSubstr("messages"));
}

TEST_F(CommandLine, PrintsTheDigestAloneAndByTensor) {
  EXPECT_EQ(troupe({"digest", model()}).out, digest_ + "\n");
  const std::string tensors = troupe({"digest", model(), "--tensors"}).out;
  EXPECT_EQ(std::count(tensors.begin(), tensors.end(), '\n'), 12);
  EXPECT_THAT(tensors, HasSubstr("F32  257x16  lm_head.weight"));
}

TEST_F(CommandLine, TokenizesThereAndBack) {
  const auto ids = lines_of(troupe({"tokenize", model(), "--text", "1+é<|endoftext|>"}).out);
  EXPECT_EQ(json::serialize(ids.at(0).at("token_ids")), "[49,43,195,169,256]");
  EXPECT_EQ(lines_of(troupe({"tokenize", model(), "--literal", "--text", "<|endoftext|>"}).out).at(0).at("token_ids").as_array().size(), 13U);
  EXPECT_EQ(troupe({"detokenize", model(), "--ids", "49,43,195,169,256"}).out, "{\"text\": \"1+é<|endoftext|>\"}\n");
  EXPECT_EQ(troupe({"detokenize", model(), "--skip-special", "--ids", "49,256"}).out, "{\"text\": \"1\"}\n");
  EXPECT_THAT(refusal({"detokenize", model(), "--ids", "1,x"}), HasSubstr("--ids"));
  EXPECT_THAT(refusal({"detokenize", model(), "--ids", "999"}), HasSubstr("999"));
}

TEST_F(CommandLine, GeneratesTheSameInAnyBatchAndWithAnyThreads) {
  const auto prompts = folder_.write("p.jsonl", "{\"prompt\": \"1+1=\"}\n{\"token_ids\": [55]}\n\n{\"prompt\": \"25+17=\"}\n").string();
  // So many that some end early and others take their places beside their siblings.
  const auto one = troupe({"generate", model(), "--prompts", prompts, "--n", "30", "--max-tokens", "50", "--batch", "1", "--threads", "1"});
  const auto many = troupe({"generate", model(), "--prompts", prompts, "--n", "30", "--max-tokens", "50", "--batch", "7", "--threads", "3", "-o", path("out.jsonl")});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(many.out, "");
  EXPECT_EQ(one.out, read(path("out.jsonl")));
  const auto lines = lines_of(one.out);
  ASSERT_EQ(lines.size(), 90U);
  EXPECT_EQ(lines[31].at("prompt").to_number<int>(), 1);
  EXPECT_EQ(lines[31].at("sample").to_number<int>(), 1);
}

TEST_F(CommandLine, ScoresWhatItGeneratedWithTheSameDigits) {
  const auto generated = lines_of(troupe({"generate", model(), "--prompt", "7", "--n", "4", "--max-tokens", "9"}).out);
  std::string tokens;
  for (const auto& line : generated) {
    json::array ids{55};
    for (const auto& id : line.at("token_ids").as_array()) ids.push_back(id);
    tokens += "{\"token_ids\": " + json::serialize(ids) + "}\n";
  }
  const auto scored = lines_of(troupe({"score", model(), "--tokens", folder_.write("t.jsonl", tokens).string()}).out);
  ASSERT_EQ(scored.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(scored[i].at("logprobs"), generated[i].at("logprobs"));
}

TEST_F(CommandLine, LeavesNothingHalfWritten) {
  const auto prompts = folder_.write("p.jsonl", "{\"prompt\": \"1\"}\n{\"prompt\": 7}\n").string();
  EXPECT_THAT(refusal({"generate", model(), "--prompts", prompts, "-o", path("out.jsonl")}), HasSubstr("p.jsonl:2: prompt: want text, got 7"));
  EXPECT_THAT(refusal({"generate", model(), "--prompt", "1", "--max-tokens", "64", "-o", path("out.jsonl")}), HasSubstr("64"));
  EXPECT_THAT(refusal({"score", model(), "--tokens", folder_.write("t", "{\"token_ids\": [1.5]}").string(), "-o", path("out.jsonl")}), HasSubstr("want whole numbers"));
  EXPECT_THAT(refusal({"generate", path("nowhere"), "--prompt", "1", "-o", path("out.jsonl")}), HasSubstr("nowhere"));
  EXPECT_FALSE(fs::exists(path("out.jsonl")));
  EXPECT_FALSE(fs::exists(path("out.jsonl.partial")));
}

TEST_F(CommandLine, RefusesSamplingOutOfRange) {
  EXPECT_THAT(refusal({"generate", model(), "--prompt", "1", "--temperature", "-1"}), HasSubstr("temperature"));
  EXPECT_THAT(refusal({"generate", model(), "--prompt", "1", "--top-p", "0"}), HasSubstr("top"));
  EXPECT_THAT(refusal({"generate", model(), "--prompt", "1", "--n", "0"}), HasSubstr("--n"));
  EXPECT_THAT(refusal({"generate", model(), "--prompt", "1", "--simd", "sse"}), HasSubstr("sse"));
  EXPECT_THAT(refusal({"generate", model()}), HasSubstr("prompt"));
}

/// An sft job of a few steps.
class SftCommand : public CommandLine {
 protected:
  SftCommand() {
    folder_.write("data.jsonl", "{\"prompt\": \"1+1=\", \"response\": \"2\"}\n{\"prompt\": \"1+2=\", \"response\": \"3\"}\n{\"text\": \"to be packed\"}\n{\"text\": \"with this\"}\n");
    folder_.write("job.toml",
                  "job = \"sft\"\nsteps = 6\ncheckpoint.every = 2\ndata.path = \"data.jsonl\"\ndata.max_length = 16\ndata.train_batch_size = 3\n"
                  "[model.init]\nhidden_size = 16\nheads = 2\nkv_heads = 1\nlayers = 1\nintermediate_size = 32\npositions_max = 32\n");
  }
  Ended run(const char* name, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"run", path("job.toml"), "--run", path(name)};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return troupe(std::move(arguments));
  }
};

TEST_F(SftCommand, TrainsAndLeavesAModel) {
  const Ended ended = run("run", {"--json"});
  ASSERT_EQ(ended.code, 0) << ended.err;
  const auto summary = json::parse(ended.out).as_object();
  EXPECT_EQ(summary.at("state"), "done");
  EXPECT_EQ(troupe({"digest", path("run")}).out, std::string(summary.at("digest").as_string()) + "\n");
  EXPECT_EQ(troupe({"digest", path("run/model")}).out, troupe({"digest", path("run")}).out);
  EXPECT_EQ(lines_of(read(path("run/metrics.jsonl"))).size(), 6U);
  EXPECT_EQ(troupe({"generate", path("run"), "--prompt", "1+1="}).code, 0);
  EXPECT_EQ(troupe({"export", path("run"), "--step", "4", "-o", path("four")}).code, 0);
  EXPECT_NE(troupe({"digest", path("four")}).out, troupe({"digest", path("run")}).out);
}

TEST_F(SftCommand, GivesOneDigestInAnyLayout) {
  ASSERT_EQ(run("a").code, 0);
  ASSERT_EQ(run("b", {"threads=3", "learner.micro_batch=1"}).code, 0);
  EXPECT_EQ(troupe({"digest", path("a")}).out, troupe({"digest", path("b")}).out);
}

TEST_F(SftCommand, ChangesNothingOfAFinishedRun) {
  ASSERT_EQ(run("run").code, 0);
  const auto before = fs::last_write_time(path("run"));
  EXPECT_EQ(run("run").code, 0);
  EXPECT_EQ(fs::last_write_time(path("run")), before);
  EXPECT_THAT(refusal({"run", path("job.toml"), "seed=9", "--run", path("run")}), HasSubstr("seed: the run in"));
}

TEST_F(SftCommand, EndsInTheSameWeightsWhenItIsKilledOrStoppedOnTheWay) {
  ASSERT_EQ(run("whole", {"steps=80", "checkpoint.every=10"}).code, 0);
  for (const auto& [signal, code] : {std::pair{SIGKILL, -SIGKILL}, {SIGTERM, 143}, {SIGINT, 130}}) {
    const std::string name = "broken" + std::to_string(signal);
    Child child({TROUPE_BINARY_DIR "/bin/troupe", "run", path("job.toml"), "steps=80", "checkpoint.every=10", "--run", path(name.c_str())});
    while (read(path((name + "/metrics.jsonl").c_str())).size() < 1000) poll(nullptr, 0, 1);
    kill(child.process(), signal);
    ASSERT_EQ(child.end().code, code);
    EXPECT_FALSE(fs::exists(path((name + "/summary.json").c_str())));
    ASSERT_EQ(run(name.c_str(), {"steps=80", "checkpoint.every=10", "threads=2"}).code, 0);
    EXPECT_EQ(troupe({"digest", path(name.c_str())}).out, troupe({"digest", path("whole")}).out);
    EXPECT_EQ(lines_of(read(path((name + "/metrics.jsonl").c_str()))).size(), 80U);
  }
}

TEST_F(SftCommand, RefusesASecondWriter) {
  Child child({TROUPE_BINARY_DIR "/bin/troupe", "run", path("job.toml"), "steps=100000", "--run", path("run")});
  while (read(path("run/metrics.jsonl")).empty()) poll(nullptr, 0, 1);
  EXPECT_THAT(refusal({"run", path("job.toml"), "steps=100000", "--run", path("run")}), HasSubstr("process " + std::to_string(child.process())));
  kill(child.process(), SIGTERM);
  EXPECT_EQ(child.end().code, 143);
}

TEST_F(SftCommand, TakesBackTheFolderOfARefusedJob) {
  folder_.write("data.jsonl", "{\"prompt\": \"1+1=\"}\n");
  EXPECT_THAT(refusal({"run", path("job.toml"), "--run", path("run")}), HasSubstr("data.jsonl:1: response: want text, got nothing"));
  EXPECT_FALSE(fs::exists(path("run")));
}

}  // namespace
}  // namespace troupe::jobs
