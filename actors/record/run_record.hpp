#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/base/value.hpp"
#include "actors/record/journal.hpp"
#include "actors/record/manifest.hpp"

namespace troupe::record {

/// What a run is, said once at its start.
struct RunInfo {
  std::string run_id;
  std::string configuration;  ///< the job file's text with all overrides, in canonical form
  std::string build_id;
  std::string contract;  ///< the numerics contract's name and hash
  std::string level = "order";
  std::vector<Fact> facts;  ///< machine, hosts, versions, times: whatever a reader may want to know
};

/// The record of a run's folder, as rank 0 writes it; every change is in run.h5, whole, when the call returns. One thread at a time.
/// The other ranks write their journals (create_journal) and read. Errors of all calls: io; corrupt; bad_input, naming the path.
class RunRecord {
 public:
  /// Makes the folder when it is not there. Refused (bad_input) where a run.h5 is.
  static Result<RunRecord> create(const std::filesystem::path& folder, const RunInfo& info);
  /// Reads run.h5 and changes nothing.
  static Result<RunRecord> open(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }

  /// A start of the job from the checkpoint of `start_step` (0 needs none: a run may be killed before its first). Seals what earlier
  /// attempts left and clears what a kill left half-made. Returns the attempt's number. The other ranks must begin after it.
  Result<std::uint32_t> begin_attempt(std::uint64_t start_step, std::uint32_t ranks);

  /// Writes `state` and then lists it. Journals should be synced first: what led to a checkpoint must survive with it.
  Result<void> add_checkpoint(std::uint64_t step, const Value& state, std::string_view weights_digest);
  /// Its length and digest are checked against run.h5 before it is read.
  Result<Value> load_checkpoint(std::uint64_t step) const;
  const std::vector<CheckpointEntry>& checkpoints() const { return manifest_.checkpoints; }
  /// Removes all checkpoints but that of step 0, the newest `count`, and those that attempts began from (a replay needs them).
  Result<void> keep(std::uint32_t count);

  /// Takes a file of the folder (job file, inputs) into the record, as it is now.
  Result<void> add_file(const std::string& relative_path);
  /// The same for every file of the folder that is neither in the record nor a result that a run goes on writing (metrics.jsonl,
  /// summary.json, event files). Returns how many.
  Result<std::uint32_t> add_other_files();

  /// The clean end, when every rank has closed its journal: journals become HDF5 files, the run is finished.
  Result<void> seal(std::string_view summary);
  /// After a crash: seals the journals of every attempt, up to their last whole entries. Returns the number of journals sealed.
  Result<std::uint32_t> seal_attempts();

 private:
  RunRecord(std::filesystem::path folder, Manifest manifest) : folder_(std::move(folder)), manifest_(std::move(manifest)) {}
  Result<std::uint32_t> seal_attempt(AttemptEntry& attempt);
  Result<void> list_file(const std::string& relative_path);
  void unlist_file(std::string_view relative_path);
  Result<void> clear_leftovers();

  std::filesystem::path folder_;
  Manifest manifest_;
};

/// Rank's own journal of an attempt that rank 0 has begun.
Result<std::unique_ptr<Journal>> create_journal(const std::filesystem::path& folder, std::string_view run_id, std::uint32_t attempt,
                                                std::uint32_t rank, const JournalOptions& options = {});

/// `troupe recover`: seals the record of a run whose processes are all gone. Returns the number of journals sealed.
Result<std::uint32_t> recover(const std::filesystem::path& folder);

struct VerifyReport {
  std::uint32_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> unknown;  ///< files in the folder that are neither the record's nor a run's results
};
/// Every file of the record against the manifest's lengths and digests, unsealed journals against their checksums.
/// Errors: corrupt, naming the first file that is missing or differs, with what was wanted and got, and how many more there are.
Result<VerifyReport> verify(const std::filesystem::path& folder);

}  // namespace troupe::record
