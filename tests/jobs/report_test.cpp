#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "actors/base/digest.hpp"
#include "jobs/folders.hpp"
#include "jobs/report/metrics_file.hpp"
#include "jobs/report/progress.hpp"
#include "jobs/report/reward_plot.hpp"
#include "jobs/report/tensorboard.hpp"

namespace troupe::jobs {
namespace {

using ::testing::HasSubstr;

TEST(MetricsFile, WritesOneLineAStepWithStepFirst) {
  const TemporaryFolder folder;
  auto file = MetricsFile::open(folder.path() / "metrics.jsonl", 0);
  ASSERT_TRUE(file && file->append(1, {{"b", 0.1}, {"a", 2}}) && file->append(2, {}));
  EXPECT_EQ(read(folder.path() / "metrics.jsonl"), "{\"step\": 1, \"a\": 2, \"b\": 0.1}\n{\"step\": 2}\n");
}

TEST(MetricsFile, WritesWhatJsonCannotSayAsNull) {
  const TemporaryFolder folder;
  auto file = MetricsFile::open(folder.path() / "m", 0);
  ASSERT_TRUE(file && file->append(1, {{"x", std::numeric_limits<double>::quiet_NaN()}}));
  EXPECT_EQ(read(folder.path() / "m"), "{\"step\": 1, \"x\": null}\n");
}

TEST(MetricsFile, IsCutBackToAStep) {
  const TemporaryFolder folder;
  const auto path = folder.write("m", "{\"step\": 1}\n{\"step\": 2}\n{\"step\": 3}\n{\"ste");
  ASSERT_TRUE(MetricsFile::open(path, 2));
  EXPECT_EQ(read(path), "{\"step\": 1}\n{\"step\": 2}\n");
  ASSERT_TRUE(MetricsFile::open(path, 0));
  EXPECT_EQ(read(path), "");
}

TEST(MetricsFile, RefusesADamagedLineBeforeTheStep) {
  const TemporaryFolder folder;
  const auto path = folder.write("m", "{\"step\": 1}\nnothing\n{\"step\": 3}\n");
  auto file = MetricsFile::open(path, 3);
  ASSERT_FALSE(file);
  EXPECT_THAT(file.error().detail, HasSubstr("m:2: want an object with \"step\""));
}

TEST(MetricsFile, ReadsOneMetric) {
  const TemporaryFolder folder;
  const auto path = folder.write("m", "{\"step\": 1, \"r\": 0.5}\n{\"step\": 2}\n{\"step\": 3, \"r\": 1}\n{\"step\": 4, \"r\"");
  EXPECT_EQ(read_metric(path, "r"), (std::vector<double>{0.5, 1}));
}

/// A frame's data, its checks done.
std::string take_record(std::string_view& bytes) {
  const auto number = [&](std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, size);
    return value;
  };
  const auto masked = [](std::string_view part) { return std::rotr(crc32c(std::as_bytes(std::span(part))), 15) + 0xA282EAD8U; };
  const std::size_t length = number(0, 8);
  EXPECT_EQ(number(8, 4), masked(bytes.substr(0, 8)));
  std::string data(bytes.substr(12, length));
  EXPECT_EQ(number(12 + length, 4), masked(data));
  bytes.remove_prefix(16 + length);
  return data;
}

TEST(TensorBoard, FramesAsTfRecordsDo) {
  // The frame of TensorFlow's own first event of a file at wall time 0: 24 bytes around 24.
  const std::string event = version_event(0);
  EXPECT_EQ(event, std::string("\x09\0\0\0\0\0\0\0\0\x1a\x0d" "brain.Event:2", 24));
  EXPECT_EQ(tf_record(event).substr(0, 12), std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
}

TEST(TensorBoard, EncodesScalarsAsProtobuf) {
  const std::string event = scalars_event(0, 300, {{"a", 1.5}});
  // wall_time 0; step 300 as a varint; summary {value {tag "a", simple_value 1.5}}
  EXPECT_EQ(event, std::string("\x09\0\0\0\0\0\0\0\0\x10\xac\x02\x2a\x0a\x0a\x08\x0a\x01" "a\x15\0\0\xc0\x3f", 24));
}

TEST(TensorBoard, WritesWholeFilesOfEvents) {
  const TemporaryFolder folder;
  auto file = EventFile::create(folder.path(), 5);
  ASSERT_TRUE(file && file->append(5, {{"loss", 0.25}}));
  EXPECT_THAT(file->path().filename().string(), ::testing::StartsWith("events.out.tfevents."));
  const std::string bytes = read(file->path());
  std::string_view left = bytes;
  EXPECT_THAT(take_record(left), HasSubstr("brain.Event:2"));
  EXPECT_THAT(take_record(left), ::testing::EndsWith(std::string("\x10\x05\x3a\x02\x08\x01")));  // a session that starts at step 5
  EXPECT_THAT(take_record(left), HasSubstr("loss"));
  EXPECT_TRUE(left.empty());
}

TEST(Progress, CarriesReportsToTheLauncher) {
  const StepReport report{.step = 3, .steps = 10, .tokens = 512, .reward = 0.1, .accuracy = 1.0 / 3, .loss = {}};
  const auto again = decode_report(encode_report(report));
  ASSERT_TRUE(again);
  EXPECT_EQ(encode_report(*again), encode_report(report));
  EXPECT_EQ(again->accuracy, report.accuracy);
  EXPECT_FALSE(decode_report("nonsense"));
}

TEST(Progress, FitsItsBarIntoTheTerminal) {
  const StepReport report{.step = 5, .steps = 10, .tokens = 1, .reward = 0.5, .accuracy = 0.25, .loss = {}};
  EXPECT_EQ(progress_bar(report, 1000, 61, 90), "step 5/10 [##########          ]  reward 0.500  accuracy 25.0 %  1000 tokens/s  1:01 left");
  for (int columns = 1; columns < 120; ++columns) EXPECT_LT(progress_bar(report, 1000, 61, columns).size(), static_cast<std::size_t>(std::max(columns, 1)));
}

TEST(RewardPlot, DrawsBarsBetweenItsBounds) {
  const std::vector<double> values{0, 0.5, 1};
  EXPECT_EQ(plot(values, "reward", 60, 2), "reward\n   1.000 ┤  █\n   0.000 ┤ ██\n");
  EXPECT_EQ(plot(std::vector<double>{1}, "reward"), "");
}

}  // namespace
}  // namespace troupe::jobs
