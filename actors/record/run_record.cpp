#include "actors/record/run_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "actors/record/files.hpp"
#include "actors/record/value_file.hpp"

namespace troupe::record {
namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// Relative paths of all regular files below `folder`, ascending.
Result<std::vector<std::string>> files_below(const fs::path& folder) {
  std::vector<std::string> out;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    if (at->is_regular_file(failed)) out.push_back(at->path().lexically_relative(folder).generic_string());
  }
  if (failed) return Error{ErrorCode::io, fmt::format("{}: cannot list the folder: {}", folder.string(), failed.message())};
  std::sort(out.begin(), out.end());
  return out;
}

/// What a run leaves beside its record: derived from it, or about the processes that write it.
bool is_result(std::string_view path) {
  return path == "run.h5" || path == "metrics.jsonl" || path == "summary.json" || path == "run.lock" ||
         path.find("tfevents") != std::string_view::npos || path.ends_with(".partial");
}

bool is_journal(std::string_view path) { return path.starts_with("journals/"); }

Result<void> check_file(const fs::path& folder, const FileEntry& entry) {
  const fs::path path = folder / entry.path;
  if (!is_there(path)) return Error{ErrorCode::corrupt, fmt::format("{}: want {} bytes, got no file", path.string(), entry.bytes)};
  Result<FileDigest> got = digest_file(path);
  if (!got) return std::move(got).error();
  if (got->bytes != entry.bytes)
    return Error{ErrorCode::corrupt, fmt::format("{}: want {} bytes, got {}", path.string(), entry.bytes, got->bytes)};
  if (got->digest.hex() != entry.digest)
    return Error{ErrorCode::corrupt, fmt::format("{}: want digest {}, got {}", path.string(), entry.digest, got->digest.hex())};
  return {};
}

}  // namespace

Result<RunRecord> RunRecord::create(const fs::path& folder, const RunInfo& info) {
  if (is_there(folder / "run.h5"))
    return Error{ErrorCode::bad_input, fmt::format("{}: want a folder without a run, got one with run.h5", folder.string())};
  for (const char* inside : {"journals", "record", "checkpoints"}) {
    if (Result<void> made = make_folder(folder / inside); !made) return std::move(made).error();
  }
  Manifest manifest;
  manifest.run_id = info.run_id;
  manifest.configuration = info.configuration;
  manifest.build_id = info.build_id;
  manifest.contract = info.contract;
  manifest.level = info.level;
  manifest.facts = info.facts;
  if (Result<void> wrote = write_manifest(folder, manifest); !wrote) return std::move(wrote).error();
  return RunRecord(folder, std::move(manifest));
}

Result<RunRecord> RunRecord::open(const fs::path& folder) {
  Result<Manifest> manifest = read_manifest(folder);
  if (!manifest) return std::move(manifest).error();
  return RunRecord(folder, std::move(*manifest));
}

Result<std::uint32_t> RunRecord::begin_attempt(std::uint64_t start_step, std::uint32_t ranks) {
  if (start_step > 0 && manifest_.checkpoint(start_step) == nullptr) {
    return Error{ErrorCode::bad_input,
                 fmt::format("{}: want a checkpoint of step {} to begin from, got none", folder_.string(), start_step)};
  }
  if (Result<std::uint32_t> sealed = seal_attempts(); !sealed) return sealed;
  if (Result<void> cleared = clear_leftovers(); !cleared) return std::move(cleared).error();
  if (Result<void> made = make_folder(folder_ / "journals"); !made) return std::move(made).error();
  AttemptEntry attempt;
  attempt.number = static_cast<std::uint32_t>(manifest_.attempts.size() + 1);
  attempt.start_step = attempt.last_step = start_step;
  attempt.ranks = ranks;
  manifest_.attempts.push_back(std::move(attempt));
  if (Result<void> wrote = write_manifest(folder_, manifest_); !wrote) return std::move(wrote).error();
  return manifest_.attempts.back().number;
}

// A kill between two writes leaves a file of ours that no manifest lists.
Result<void> RunRecord::clear_leftovers() {
  for (const char* inside : {"journals", "record", "checkpoints"}) {
    if (!is_there(folder_ / inside)) continue;
    Result<std::vector<std::string>> found = files_below(folder_ / inside);
    if (!found) return std::move(found).error();
    for (const std::string& name : *found) {
      const std::string path = std::string(inside) + "/" + name;
      if (manifest_.file(path) != nullptr) continue;
      if (Result<void> removed = remove_file(folder_ / path); !removed) return removed;
    }
  }
  return {};
}

void RunRecord::unlist_file(std::string_view relative_path) {
  std::erase_if(manifest_.files, [&](const FileEntry& entry) { return entry.path == relative_path; });
}

Result<void> RunRecord::list_file(const std::string& relative_path) {
  Result<FileDigest> digest = digest_file(folder_ / relative_path);
  if (!digest) return std::move(digest).error();
  unlist_file(relative_path);
  manifest_.files.push_back({.path = relative_path, .bytes = digest->bytes, .digest = digest->digest.hex()});
  std::sort(manifest_.files.begin(), manifest_.files.end(), [](const FileEntry& a, const FileEntry& b) { return a.path < b.path; });
  return {};
}

Result<void> RunRecord::add_file(const std::string& relative_path) {
  if (Result<void> listed = list_file(relative_path); !listed) return listed;
  return write_manifest(folder_, manifest_);
}

Result<std::uint32_t> RunRecord::add_other_files() {
  Result<std::vector<std::string>> found = files_below(folder_);
  if (!found) return std::move(found).error();
  std::uint32_t added = 0;
  for (const std::string& path : *found) {
    if (is_result(path) || manifest_.file(path) != nullptr || is_journal(path)) continue;
    if (Result<void> listed = list_file(path); !listed) return std::move(listed).error();
    ++added;
  }
  if (added == 0) return added;
  if (Result<void> wrote = write_manifest(folder_, manifest_); !wrote) return std::move(wrote).error();
  return added;
}

Result<void> RunRecord::add_checkpoint(std::uint64_t step, const Value& state, std::string_view weights_digest) {
  CheckpointEntry entry;
  entry.step = step;
  entry.file = checkpoint_path(step);
  entry.weights_digest = weights_digest;
  entry.attempt = static_cast<std::uint32_t>(manifest_.attempts.size());
  if (Result<void> wrote = write_value_file(folder_ / entry.file, state); !wrote) return wrote;
  if (Result<void> listed = list_file(entry.file); !listed) return listed;
  std::erase_if(manifest_.checkpoints, [&](const CheckpointEntry& other) { return other.step == step; });
  manifest_.checkpoints.push_back(std::move(entry));
  std::sort(manifest_.checkpoints.begin(), manifest_.checkpoints.end(),
            [](const CheckpointEntry& a, const CheckpointEntry& b) { return a.step < b.step; });
  return write_manifest(folder_, manifest_);
}

Result<Value> RunRecord::load_checkpoint(std::uint64_t step) const {
  const CheckpointEntry* entry = manifest_.checkpoint(step);
  if (entry == nullptr)
    return Error{ErrorCode::bad_input, fmt::format("{}: want a checkpoint of step {}, got none", folder_.string(), step)};
  const FileEntry* file = manifest_.file(entry->file);
  if (file == nullptr) return Error{ErrorCode::corrupt, fmt::format("{}: run.h5 lists no digest of {}", folder_.string(), entry->file)};
  if (Result<void> checked = check_file(folder_, *file); !checked) return std::move(checked).error();
  return read_value_file(folder_ / entry->file);
}

Result<void> RunRecord::keep(std::uint32_t count) {
  std::set<std::uint64_t> kept{0};
  for (const AttemptEntry& attempt : manifest_.attempts) kept.insert(attempt.start_step);
  const std::size_t total = manifest_.checkpoints.size();
  for (std::size_t i = total - std::min<std::size_t>(total, count); i < total; ++i) kept.insert(manifest_.checkpoints[i].step);
  std::vector<std::string> removed;
  std::erase_if(manifest_.checkpoints, [&](const CheckpointEntry& entry) {
    const bool goes = kept.count(entry.step) == 0;
    if (goes) removed.push_back(entry.file);
    return goes;
  });
  if (removed.empty()) return {};
  for (const std::string& path : removed) unlist_file(path);
  // Unlisted first: a kill in between leaves a file too many, never one too few.
  if (Result<void> wrote = write_manifest(folder_, manifest_); !wrote) return wrote;
  for (const std::string& path : removed) {
    if (Result<void> gone = remove_file(folder_ / path); !gone) return gone;
  }
  return {};
}

// run.h5 names the sealed files before the journals go, so that at every moment one of the two is the record.
Result<std::uint32_t> RunRecord::seal_attempt(AttemptEntry& attempt) {
  std::vector<std::string> journals;
  for (std::uint32_t rank = 0; rank < attempt.ranks; ++rank) {
    const std::string journal = journal_path(attempt.number, rank);
    ExitEntry& exit = attempt.exits.emplace_back();
    exit.rank = rank;
    exit.reason = "ended before it began a journal";
    if (!is_there(folder_ / journal)) continue;
    Result<JournalTables> tables = read_journal(folder_ / journal);
    if (!tables) return std::move(tables).error();
    const std::string sealed = sealed_path(attempt.number, rank);
    if (Result<void> wrote = save_value_file(folder_ / sealed, *tables, {.compress = true, .links = {}}); !wrote)
      return std::move(wrote).error();
    if (Result<void> listed = list_file(sealed); !listed) return std::move(listed).error();
    count_events(manifest_, *tables);
    exit = exit_of(*tables, rank);
    if (!tables->steps.step.empty()) attempt.last_step = std::max(attempt.last_step, tables->steps.step.back());
    journals.push_back(journal);
  }
  attempt.sealed = true;
  if (Result<void> wrote = write_manifest(folder_, manifest_); !wrote) return std::move(wrote).error();
  for (const std::string& journal : journals) {
    if (Result<void> removed = remove_file(folder_ / journal); !removed) return std::move(removed).error();
  }
  return static_cast<std::uint32_t>(journals.size());
}

Result<std::uint32_t> RunRecord::seal_attempts() {
  if (Result<void> made = make_folder(folder_ / "record"); !made) return std::move(made).error();
  std::uint32_t sealed = 0;
  for (std::size_t i = 0; i < manifest_.attempts.size(); ++i) {
    if (manifest_.attempts[i].sealed) continue;
    const Manifest before = manifest_;
    Result<std::uint32_t> journals = seal_attempt(manifest_.attempts[i]);
    if (!journals) {
      manifest_ = before;
      return journals;
    }
    sealed += *journals;
  }
  return sealed;
}

Result<void> RunRecord::seal(std::string_view summary) {
  if (Result<std::uint32_t> sealed = seal_attempts(); !sealed) return std::move(sealed).error();
  if (Result<void> cleared = clear_leftovers(); !cleared) return cleared;
  manifest_.finished = true;
  manifest_.summary = summary;
  std::error_code ignored;
  fs::remove(folder_ / "journals", ignored);  // empty now; when it is not, something of the user's is in it
  return write_manifest(folder_, manifest_);
}

Result<std::unique_ptr<Journal>> create_journal(const fs::path& folder, std::string_view run_id, std::uint32_t attempt, std::uint32_t rank,
                                                const JournalOptions& options) {
  JournalHeader header;
  header.attempt = attempt;
  header.rank = rank;
  header.run_id = run_id;
  return Journal::create(folder / journal_path(attempt, rank), header, options);
}

Result<std::uint32_t> recover(const fs::path& folder) {
  Result<RunRecord> record = RunRecord::open(folder);
  if (!record) return std::move(record).error();
  return record->seal_attempts();
}

Result<VerifyReport> verify(const fs::path& folder) {
  Result<Manifest> manifest = read_manifest(folder);
  if (!manifest) return std::move(manifest).error();
  VerifyReport report;
  std::set<std::string> known;
  std::vector<Error> problems;
  for (const FileEntry& entry : manifest->files) {
    known.insert(entry.path);
    if (Result<void> checked = check_file(folder, entry); !checked) problems.push_back(std::move(checked).error());
    ++report.files;
    report.bytes += entry.bytes;
  }
  for (const AttemptEntry& attempt : manifest->attempts) {
    for (std::uint32_t rank = 0; rank < attempt.ranks && !attempt.sealed; ++rank) {
      const std::string journal = journal_path(attempt.number, rank);
      known.insert(journal);
      if (!is_there(folder / journal)) continue;
      Result<JournalTables> tables = read_journal(folder / journal);
      if (!tables) problems.push_back(std::move(tables).error());
      ++report.files;
    }
  }
  Result<std::vector<std::string>> found = files_below(folder);
  if (!found) return std::move(found).error();
  for (const std::string& path : *found) {
    if (known.count(path) == 0 && !is_result(path)) report.unknown.push_back(path);
  }
  if (problems.empty()) return report;
  Error first = problems.front();
  if (problems.size() > 1) first.detail += fmt::format(" (and {} more files differ)", problems.size() - 1);
  return first;
}

}  // namespace troupe::record
