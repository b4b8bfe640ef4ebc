#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <set>
#include <sstream>

#include "jobs/child.hpp"
#include "jobs/folders.hpp"
#include "jobs/tasks/task.hpp"
#include "models/config.hpp"

namespace troupe::jobs {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

const fs::path kExample = fs::path(TROUPE_SOURCE_DIR) / "jobs" / "examples" / "arithmetic";

Ended program(const char* name, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), std::string(TROUPE_BINARY_DIR "/bin/") + name);
  return Child(std::move(arguments)).end();
}

std::vector<json::object> lines_of(const std::string& text) {
  std::vector<json::object> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(json::parse(line).as_object());
  return lines;
}

TEST(ArithmeticExample, ShipsTheDataThatItsGeneratorMakes) {
  const TemporaryFolder folder;
  const auto data = read(kExample / "data.jsonl");
  const auto count = std::count(data.begin(), data.end(), '\n');
  ASSERT_GT(count, 0);
  EXPECT_EQ(program("arithmetic-data", {std::to_string(count), "1"}).out, data);
}

TEST(ArithmeticExample, LearnsFromNoHeldOutProblem) {
  std::set<std::string> held_out;
  for (std::uint32_t i = 0; i < held_out_count("arithmetic"); ++i) held_out.insert(held_out_problem("arithmetic", i).prompt);
  EXPECT_GT(held_out.size(), 300U);
  for (const auto& line : lines_of(read(kExample / "data.jsonl"))) EXPECT_FALSE(held_out.contains(std::string(line.at("prompt").as_string())));
}

TEST(ArithmeticExample, ShipsASmallModelThatSplitsEightWays) {
  const auto config = models::load_config(kExample / "start");
  ASSERT_TRUE(config) << config.error().detail;
  EXPECT_EQ(config->heads, 8U);
  EXPECT_EQ(config->kv_heads, 4U);
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(kExample / "start")) bytes += entry.file_size();
  EXPECT_LE(bytes, 4U << 20U);
}

TEST(ArithmeticExample, StartsWithAFifthToTwoFifthsOfTheHeldOutProblemsRight) {
  const TemporaryFolder folder;
  std::string prompts;
  for (std::uint32_t i = 0; i < held_out_count("arithmetic"); ++i) prompts += json::serialize(json::object{{"prompt", held_out_problem("arithmetic", i).prompt}}) + "\n";
  const auto file = folder.write("prompts.jsonl", prompts);
  const Ended ended = program("troupe", {"generate", (kExample / "start").string(), "--prompts", file.string(), "--temperature", "0", "--max-tokens", "5", "--batch", "128", "-o", (folder.path() / "out").string()});
  ASSERT_EQ(ended.code, 0) << ended.err;
  double right = 0;
  const auto lines = lines_of(read(folder.path() / "out"));
  for (std::uint32_t i = 0; i < lines.size(); ++i) right += reward_of("arithmetic", held_out_problem("arithmetic", i), std::string(lines[i].at("text").as_string()));
  const double accuracy = right / held_out_count("arithmetic");
  EXPECT_GE(accuracy, 0.2);
  EXPECT_LE(accuracy, 0.4);
}

}  // namespace
}  // namespace troupe::jobs
