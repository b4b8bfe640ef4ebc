#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "actors/base/error.hpp"
#include "jobs/config/config.hpp"
#include "jobs/run_folder/paths.hpp"
#include "jobs/run_folder/run_lock.hpp"
#include "jobs/run_folder/summary_file.hpp"

namespace troupe::jobs {

enum class RunState : std::uint8_t {
  fresh,     ///< nothing of it has run
  resumed,   ///< run.h5 is there: go on from the last checkpoint
  finished,  ///< summary.json says done: nothing to do, and nothing may change
};

/// A RUN folder, opened for writing by one process of the job. Fresh, it gets the job file (job.toml, with the overrides in it) and the
/// inputs that are small enough (inputs/, inputs.json). Move-only; the lock goes with it.
class RunFolder {
 public:
  /// Opens or makes it. Errors: bad_input for a file, for a folder with someone's files, and for a run of another configuration, naming
  /// the first key that differs; locked, naming host and process; io.
  static Result<RunFolder> open(const std::filesystem::path& folder, const JobConfig& config);
  /// What open would find, changing nothing and taking no lock. Errors: those of open, but locked.
  static Result<RunState> look(const std::filesystem::path& folder, const JobConfig& config);

  const std::filesystem::path& path() const { return path_; }
  RunState state() const { return state_; }
  /// One line when something was taken over: a killed process's lock.
  const std::string& notice() const { return notice_; }

  /// Takes back what open made of a fresh folder: the job was refused before it began.
  void abandon();

 private:
  RunFolder(std::filesystem::path path, RunState state) : path_(std::move(path)), state_(state) {}
  Result<void> prepare(const JobConfig& config);
  void clear_ours();

  std::filesystem::path path_;
  RunState state_;
  std::string notice_;
  bool is_ours_ = false;  ///< the folder was made by open
  std::optional<RunLock> lock_;
};

/// The configuration of an opened run on any rank: as given, its inputs being those kept in the run. Errors: io, corrupt.
Result<JobConfig> opened_config(const std::filesystem::path& run, const JobConfig& given);

}  // namespace troupe::jobs
