#include "actors/record/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "actors/base/check.hpp"
#include "actors/base/digest.hpp"
#include "actors/base/monotonic.hpp"

namespace troupe::record {

void FrameWriter::begin(EntryType type) {
  start_ = out_.size();
  out_.resize(start_ + kFrameHeaderBytes);
  byte(static_cast<std::uint8_t>(type));
}

void FrameWriter::end() {
  const BytesView body = BytesView(out_).subspan(start_ + kFrameHeaderBytes);
  TROUPE_CHECK(body.size() <= kFrameBodyMax, "an entry's length has 24 bits");
  const auto length = static_cast<std::uint32_t>(body.size());
  const std::uint32_t head = length | static_cast<std::uint32_t>(length_check(length)) << 24U;
  const std::uint32_t crc = crc32c(body);
  std::memcpy(out_.data() + start_, &head, sizeof head);
  std::memcpy(out_.data() + start_ + sizeof head, &crc, sizeof crc);
}

Result<std::unique_ptr<Journal>> Journal::create(const std::filesystem::path& path, const JournalHeader& header,
                                                 const JournalOptions& options) {
  Result<FileDescriptor> file = open_file(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND);
  if (!file) return std::move(file).error();
  Bytes start;
  FrameWriter writer(start);
  writer.bytes(std::as_bytes(std::span(kJournalMagic)));
  writer.begin(EntryType::header);
  writer.varint(kJournalFormat);
  writer.varint(header.attempt);
  writer.varint(header.rank);
  writer.text(header.run_id);
  writer.end();
  if (Result<void> wrote = write_all(*file, path, start); !wrote) return std::move(wrote).error();
  std::unique_ptr<Journal> journal(new Journal(path, std::move(*file), options));
  journal->appended_bytes_ = journal->written_bytes_ = start.size();
  journal->writer_ = std::thread([raw = journal.get()] { raw->write_until_closed(); });
  return journal;
}

Journal::Journal(std::filesystem::path path, FileDescriptor file, const JournalOptions& options)
    : path_(std::move(path)), file_(std::move(file)), options_(options) {
  filling_.reserve(options.flush_bytes * 2);
  writing_.reserve(options.flush_bytes * 2);
}

Journal::~Journal() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  to_write_.notify_one();
  writer_.join();
}

void Journal::appended(std::unique_lock<std::mutex>& lock, std::size_t before) {
  const std::size_t after = filling_.size();
  if (after == before) return;
  appended_bytes_ += after - before;
  ++entries_;
  const bool first = before == 0;
  const bool full = before < options_.flush_bytes && after >= options_.flush_bytes;
  if (first || full) to_write_.notify_one();
  if (after > options_.buffered_bytes_max) written_.wait(lock, [&] { return filling_.size() <= options_.buffered_bytes_max || error_; });
}

void Journal::write_until_closed() {
  std::unique_lock lock(mutex_);
  for (;;) {
    to_write_.wait(lock, [&] { return !filling_.empty() || closing_ || flush_wanted_; });
    // The first entry of a buffer woke us; more may share its write until it has waited its time.
    to_write_.wait_for(lock, options_.flush_every, [&] { return filling_.size() >= options_.flush_bytes || closing_ || flush_wanted_; });
    flush_wanted_ = false;
    if (filling_.empty() && closing_) return;
    std::swap(filling_, writing_);
    lock.unlock();
    const auto start = monotonic_now();
    Result<void> wrote = failed() ? Result<void>() : write_all(file_, path_, writing_);
    in_writer_ns_.fetch_add((monotonic_now() - start).count(), std::memory_order_relaxed);
    lock.lock();
    if (!wrote) fail(std::move(wrote).error());
    written_bytes_ += writing_.size();
    writing_.clear();
    written_.notify_all();
  }
}

void Journal::fail(Error error) {
  if (!error_) error_ = Error{error.code, "the record cannot be written: " + error.detail};
  failed_.store(true, std::memory_order_relaxed);
}

Result<void> Journal::flush() {
  const auto start = monotonic_now();
  std::unique_lock lock(mutex_);
  const std::uint64_t target = appended_bytes_;
  if (written_bytes_ < target) {
    flush_wanted_ = true;
    to_write_.notify_one();
    written_.wait(lock, [&] { return written_bytes_ >= target || error_; });
  }
  add_cost(monotonic_now() - start);
  if (error_) return *error_;
  return {};
}

Result<void> Journal::sync() {
  if (Result<void> flushed = flush(); !flushed) return flushed;
  const auto start = monotonic_now();
  const bool done = ::fdatasync(file_.number()) == 0 || errno == EINVAL;  // EINVAL: not a file on a disk
  const int code = errno;
  add_cost(monotonic_now() - start);
  if (done) return {};
  const std::lock_guard lock(mutex_);
  fail({ErrorCode::io, fmt::format("{}: cannot flush to the disk: {}", path_.string(), std::strerror(code))});
  return *error_;
}

Result<void> Journal::close(const Error& reason) {
  append([&](FrameWriter& writer) {
    writer.begin(EntryType::end);
    writer.varint(static_cast<std::uint16_t>(reason.code));
    writer.text(reason.detail);
    writer.end();
  });
  return flush();
}

std::optional<Error> Journal::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

RecordingCost Journal::cost() const {
  const std::lock_guard lock(mutex_);
  return {.in_actors = std::chrono::nanoseconds(in_actors_ns_.load(std::memory_order_relaxed)),
          .in_writer = std::chrono::nanoseconds(in_writer_ns_.load(std::memory_order_relaxed)),
          .entries = entries_,
          .bytes = appended_bytes_};
}

}  // namespace troupe::record
