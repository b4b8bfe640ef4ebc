#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "actors/base/error.hpp"
#include "jobs/report/json.hpp"

namespace troupe::jobs {

/// metrics.jsonl: one line a step, "step" first. A line is one write, so a reader sees whole lines, and a killed run leaves at most one part of one.
class MetricsFile {
 public:
  /// Opens for appending, cut back to the lines of steps up to `last_step` (0: empty). Errors: io; corrupt when a line before is none.
  static Result<MetricsFile> open(const std::filesystem::path& file, std::uint64_t last_step);
  MetricsFile(MetricsFile&& other) noexcept;
  MetricsFile& operator=(MetricsFile&&) = delete;
  ~MetricsFile();

  Result<void> append(std::uint64_t step, const Metrics& metrics);

 private:
  MetricsFile(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::filesystem::path path_;
  int fd_;
};

/// One metric's values in the order of the steps; lines that lack it are passed over. A part of a line at the end is, too.
std::vector<double> read_metric(const std::filesystem::path& file, std::string_view name);

}  // namespace troupe::jobs
