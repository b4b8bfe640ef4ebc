#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "actors/base/error.hpp"

namespace troupe::jobs {

/// Who holds a RUN, as its lock file says.
struct LockHolder {
  std::string host;
  std::int64_t process = 0;
  std::uint64_t started_ticks = 0;  ///< the process's start time (/proc/PID/stat), so that a reused id is told apart

  std::string text() const;
  static std::optional<LockHolder> parse(std::string_view text);
  static LockHolder of_this_process();
};

/// The right to write a RUN: an fcntl lock (of the open file) on RUN/run.lock, which holds who has it and whose modification time is a
/// heartbeat. The file goes away with the lock; one that is left is that of a killed process. Any thread.
class RunLock {
 public:
  /// Errors: locked, naming host and process, while a live process holds it; io. Where the file system has no locks, a heartbeat of the
  /// last 15 s counts as alive.
  static Result<RunLock> take(const std::filesystem::path& file);
  RunLock(RunLock&&) noexcept;
  RunLock& operator=(RunLock&&) = delete;
  ~RunLock();

  /// The holder whose stale lock was taken over.
  const std::optional<LockHolder>& taken_from() const { return taken_from_; }

 private:
  struct Heart;
  RunLock(std::filesystem::path file, int fd, std::optional<LockHolder> taken_from);

  std::filesystem::path file_;
  int fd_ = -1;
  std::optional<LockHolder> taken_from_;
  std::unique_ptr<Heart> heart_;
};

}  // namespace troupe::jobs
