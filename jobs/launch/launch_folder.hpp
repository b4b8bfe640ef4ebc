#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "actors/base/error.hpp"

namespace troupe::jobs {

/// The temporary folder in which a launcher and its ranks speak: a file rank-R with the process's id for each rank that takes signals, a
/// file exit-R with its exit code for each that ended by itself (mpirun hides both), and a fifo that rank 0 writes its progress to. The
/// environment variable TROUPE_LAUNCH names it to the ranks.
class LaunchFolder {
 public:
  static constexpr const char* kVariable = "TROUPE_LAUNCH";

  /// The launcher's: makes the folder and its fifo, and removes them at the end. Errors: io.
  static Result<LaunchFolder> create();
  /// A rank's: nothing when it was not started by a launcher on this host.
  static std::optional<LaunchFolder> of_this_process();

  LaunchFolder(LaunchFolder&& other) noexcept;
  LaunchFolder& operator=(LaunchFolder&&) = delete;
  ~LaunchFolder();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path fifo() const { return path_ / "progress"; }

  /// By rank. Files that are being written are not there yet: both kinds are written aside and renamed.
  std::map<std::uint32_t, pid_t> processes() const;
  std::map<std::uint32_t, int> exit_codes() const;

  void write_process(std::uint32_t rank, pid_t process) const;
  void write_exit_code(std::uint32_t rank, int code) const;

 private:
  LaunchFolder(std::filesystem::path path, bool is_owner) : path_(std::move(path)), is_owner_(is_owner) {}
  std::filesystem::path path_;
  bool is_owner_;
};

/// This process's rank as the launchers' environment has it, without MPI.
std::uint32_t rank_from_environment();

}  // namespace troupe::jobs
