#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "actors/base/bytes.hpp"
#include "actors/base/error.hpp"
#include "jobs/report/json.hpp"

namespace troupe::jobs {

/// A TensorBoard event file: TFRecord frames (u64 length, its masked CRC-32C, data, its masked CRC-32C; little-endian) of Event
/// protobufs, one a step with a scalar a metric. A run that goes on writes a file of its own, whose first event tells TensorBoard to
/// forget what an earlier one had from that step on.
class EventFile {
 public:
  /// FOLDER/events.out.tfevents.SECONDS.HOST.PID. first_step: the first that will be written. Errors: io.
  static Result<EventFile> create(const std::filesystem::path& folder, std::uint64_t first_step);
  EventFile(EventFile&& other) noexcept;
  EventFile& operator=(EventFile&&) = delete;
  ~EventFile();

  Result<void> append(std::uint64_t step, const Metrics& metrics);
  const std::filesystem::path& path() const { return path_; }

 private:
  EventFile(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}
  Result<void> write_record(std::string_view event);

  std::filesystem::path path_;
  int fd_;
};

/// One frame around `data`.
std::string tf_record(std::string_view data);
/// Event protobufs: the first of a file; one that starts a session at a step; one with scalars.
std::string version_event(double wall_s);
std::string session_event(double wall_s, std::uint64_t step);
std::string scalars_event(double wall_s, std::uint64_t step, const Metrics& metrics);

}  // namespace troupe::jobs
