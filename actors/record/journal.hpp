#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "actors/base/error.hpp"
#include "actors/record/files.hpp"
#include "actors/record/journal_format.hpp"
#include "actors/record/journal_tables.hpp"

namespace troupe::record {

/// What recording cost this process so far.
struct RecordingCost {
  std::chrono::nanoseconds in_actors{};  ///< digests, encoding and waits, on the threads that run actors
  std::chrono::nanoseconds in_writer{};  ///< on the journal's own thread
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;  ///< written or about to be
};

struct JournalOptions {
  std::chrono::milliseconds flush_every{10};
  std::size_t flush_bytes = 1U << 20U;
  std::size_t buffered_bytes_max = 64U << 20U;  ///< past it, who appends waits for the disk
};

/// A process's record while it runs: entries appended to one file, in the order of their appends, by a thread of its own.
/// Thread-safe. What was appended more than `flush_every` ago survives SIGKILL; what sync() returned after survives the machine.
/// The first write error ends the writing: later entries are dropped, and error() tells.
/// Invariants: (1) a frame lies whole in one buffer; (2) only the writer's thread touches writing_ and the file, except in create;
/// (3) appended_bytes_ counts what entered filling_, written_bytes_ what left writing_ (or was dropped after an error).
class Journal {
 public:
  /// The file must not exist. Errors: io.
  static Result<std::unique_ptr<Journal>> create(const std::filesystem::path& path, const JournalHeader& header,
                                                 const JournalOptions& options = {});
  ~Journal();  ///< close() without a reason: the journal then ends like a killed one's, but whole

  /// Calls fill(FrameWriter&), which appends whole frames; nobody else's come in between.
  template <class Fill>
  void append(Fill fill) {
    if (failed_.load(std::memory_order_relaxed)) return;  // pairs with nothing: a late look only drops a little later
    std::unique_lock lock(mutex_);
    const std::size_t before = filling_.size();
    FrameWriter writer(filling_);
    fill(writer);
    appended(lock, before);
  }

  Result<void> flush();                     ///< all that was appended before is in the file
  Result<void> sync();                      ///< and on the disk
  Result<void> close(const Error& reason);  ///< the last entry, how the process ended, and flush: sealing, or the last sync, makes it durable
  std::optional<Error> error() const;
  bool failed() const { return failed_.load(std::memory_order_relaxed); }

  void add_cost(std::chrono::nanoseconds in_actors) { in_actors_ns_.fetch_add(in_actors.count(), std::memory_order_relaxed); }
  RecordingCost cost() const;

 private:
  Journal(std::filesystem::path path, FileDescriptor file, const JournalOptions& options);
  void appended(std::unique_lock<std::mutex>& lock, std::size_t before);
  void write_until_closed();
  void fail(Error error);

  const std::filesystem::path path_;
  const FileDescriptor file_;
  const JournalOptions options_;

  mutable std::mutex mutex_;
  std::condition_variable to_write_, written_;
  Bytes filling_, writing_;
  std::uint64_t appended_bytes_ = 0, written_bytes_ = 0, entries_ = 0;
  bool flush_wanted_ = false, closing_ = false;
  std::optional<Error> error_;
  std::atomic<bool> failed_{false};
  std::atomic<std::int64_t> in_actors_ns_{0}, in_writer_ns_{0};
  std::thread writer_;
};

/// What a journal says up to its last whole entry; the file may be cut anywhere or still be written.
/// Errors: io; corrupt, naming file and offset, for a whole entry that is not what was written; unsupported for another format.
Result<JournalTables> read_journal(const std::filesystem::path& path);

}  // namespace troupe::record
