#include "jobs/run_folder/run_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "jobs/run_folder/inputs.hpp"
#include "models/files.hpp"

namespace troupe::jobs {
namespace {

namespace fs = std::filesystem;

Error refused(std::string detail) { return {ErrorCode::bad_input, std::move(detail)}; }

// What a job makes in its folder, beside the record.
bool is_ours(std::string_view name) {
  constexpr std::array<std::string_view, 10> kNames{"record", "journals", "run.lock", "job.toml", "inputs", "inputs.json", "metrics.jsonl", "summary.json", "checkpoints", "model"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() || name.starts_with("events.out.tfevents.") || name.ends_with(".partial") ||
         name.starts_with("run.h5");
}

bool is_killed_start(const fs::path& folder) {
  std::error_code code;
  if (!fs::exists(run_paths::lock(folder), code) && !fs::exists(run_paths::job_file(folder), code)) return false;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    if (!is_ours(entry.path().filename().string())) return false;
  }
  return true;
}

// A run goes on only with the configuration and the inputs that it began with.
Result<void> compare(const fs::path& folder, const JobConfig& config) {
  auto stored = read_job(run_paths::job_file(folder));
  if (!stored) return Error{ErrorCode::corrupt, fmt::format("{}: the run's own job file cannot be read: {}", folder.string(), stored.error().detail)};
  if (const auto difference = first_difference(*stored, config)) {
    return refused(fmt::format("{}: the run in {} has {}, got {}; choose another folder, or the same configuration", difference->key, folder.string(), difference->left, difference->right));
  }
  auto inputs = read_inputs(folder);
  if (!inputs) return inputs.error();
  return check_inputs(config, *inputs);
}

}  // namespace

Result<RunState> RunFolder::look(const fs::path& folder, const JobConfig& config) {
  std::error_code code;
  const auto status = fs::status(folder, code);
  if (!fs::exists(status)) return RunState::fresh;
  if (!fs::is_directory(status)) return refused(fmt::format("{}: want a folder for the run, got a file", folder.string()));
  if (fs::is_empty(folder, code)) return RunState::fresh;
  const bool has_record = fs::exists(run_paths::record(folder), code);
  auto summary = read_summary(folder);
  const bool is_done = summary && *summary && (*summary)->state == "done" && fs::exists(run_paths::job_file(folder), code);
  if (has_record || is_done) {
    if (auto done = compare(folder, config); !done) return done.error();
    return is_done ? RunState::finished : RunState::resumed;
  }
  if (is_killed_start(folder)) return RunState::fresh;
  return refused(fmt::format("{}: want a new or empty folder, or a run's, got one with other files in it", folder.string()));
}

Result<RunFolder> RunFolder::open(const fs::path& folder, const JobConfig& config) {
  auto state = look(folder, config);
  if (!state) return state.error();
  if (*state == RunState::finished) return RunFolder(folder, *state);
  std::error_code code;
  const bool is_new = !fs::exists(folder, code);
  fs::create_directories(folder, code);
  if (code) return Error{ErrorCode::io, fmt::format("{}: could not be made: {}", folder.string(), code.message())};
  auto lock = RunLock::take(run_paths::lock(folder));
  if (!lock) return lock.error();
  // Between the look and the lock another process may have begun, or even ended.
  state = look(folder, config);
  if (!state) return state.error();
  RunFolder run(folder, *state);
  run.is_ours_ = is_new;
  if (const auto& holder = lock->taken_from()) run.notice_ = fmt::format("{}: took over from process {} on host {}, which is gone", folder.string(), holder->process, holder->host);
  run.lock_.emplace(std::move(*lock));
  if (*state == RunState::finished) return run.lock_.reset(), Result<RunFolder>(std::move(run));
  if (auto done = run.prepare(config); !done) {
    run.abandon();
    return done.error();
  }
  return run;
}

Result<void> RunFolder::prepare(const JobConfig& config) {
  std::error_code code;
  if (state_ == RunState::fresh) {
    clear_ours();
    auto inputs = keep_inputs(path_, config);
    if (!inputs) return inputs.error();
    if (auto done = write_inputs(path_, *inputs); !done) return done;
    if (auto done = models::write_text(run_paths::job_file(path_), job_file_text(with_inputs(config, *inputs))); !done) return done;
  }
  fs::remove(run_paths::summary(path_), code);  // of an attempt that failed
  return {};
}

Result<JobConfig> opened_config(const fs::path& run, const JobConfig& given) {
  auto inputs = read_inputs(run);
  if (!inputs) return inputs.error();
  return with_inputs(given, *inputs, fs::absolute(run));
}

void RunFolder::clear_ours() {
  std::error_code code;
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(path_, code)) {
    if (entry.path().filename() != "run.lock") left.push_back(entry.path());
  }
  for (const fs::path& path : left) fs::remove_all(path, code);
}

void RunFolder::abandon() {
  if (state_ != RunState::fresh) return;
  clear_ours();
  lock_.reset();
  std::error_code code;
  if (is_ours_) fs::remove(path_, code);
}

}  // namespace troupe::jobs
