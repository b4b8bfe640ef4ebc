#include "jobs/report/tensorboard.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "actors/base/digest.hpp"
#include "jobs/report/wall_clock.hpp"

#include "jobs/report/write_all.hpp"

namespace troupe::jobs {
namespace {

template <class T>
void append_fixed(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) out.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// Protobuf's wire types.
enum Wire : std::uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };
void append_tag(std::string& out, std::uint32_t field, Wire wire) { append_varint(out, field << 3 | wire); }

void append_text(std::string& out, std::uint32_t field, std::string_view text) {
  append_tag(out, field, bytes);
  append_varint(out, text.size());
  out += text;
}

// Fields of tensorflow.Event: wall_time 1, step 2, file_version 3, summary 5, session_log 7.
std::string event_head(double wall_s, std::uint64_t step) {
  std::string event;
  append_tag(event, 1, fixed64);
  append_fixed(event, std::bit_cast<std::uint64_t>(wall_s));
  append_tag(event, 2, varint);
  append_varint(event, step);
  return event;
}

// TFRecord's rotated CRC, so that a sum over data that holds sums stays sound.
std::uint32_t masked_crc(std::string_view data) {
  const std::uint32_t crc = crc32c(std::as_bytes(std::span(data)));
  return std::rotr(crc, 15) + 0xA282EAD8U;
}

Error failed(const std::filesystem::path& path) { return {ErrorCode::io, fmt::format("{}: could not be written: {}", path.string(), std::strerror(errno))}; }

}  // namespace

std::string tf_record(std::string_view data) {
  std::string record;
  append_fixed(record, std::uint64_t{data.size()});
  append_fixed(record, masked_crc(record));
  record += data;
  append_fixed(record, masked_crc(data));
  return record;
}

std::string version_event(double wall_s) {
  std::string event;
  append_tag(event, 1, fixed64);
  append_fixed(event, std::bit_cast<std::uint64_t>(wall_s));
  append_text(event, 3, "brain.Event:2");
  return event;
}

std::string session_event(double wall_s, std::uint64_t step) {
  std::string log;
  append_tag(log, 1, varint);  // SessionLog.status = START
  append_varint(log, 1);
  std::string event = event_head(wall_s, step);
  append_text(event, 7, log);
  return event;
}

std::string scalars_event(double wall_s, std::uint64_t step, const Metrics& metrics) {
  std::string summary;
  for (const auto& [name, number] : metrics) {
    std::string value;  // Summary.Value: tag 1, simple_value 2
    append_text(value, 1, name);
    append_tag(value, 2, fixed32);
    append_fixed(value, std::bit_cast<std::uint32_t>(static_cast<float>(number)));
    append_text(summary, 1, value);
  }
  std::string event = event_head(wall_s, step);
  append_text(event, 5, summary);
  return event;
}

Result<EventFile> EventFile::create(const std::filesystem::path& folder, std::uint64_t first_step) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const double now_s = unix_seconds();
  const auto path = folder / fmt::format("events.out.tfevents.{:.3f}.{}.{}", now_s, host.data(), getpid());
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return failed(path);
  EventFile file(path, fd);
  if (auto done = file.write_record(version_event(now_s)); !done) return done.error();
  if (auto done = file.write_record(session_event(now_s, first_step)); !done) return done.error();
  return file;
}

EventFile::EventFile(EventFile&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

EventFile::~EventFile() {
  if (fd_ >= 0) close(fd_);
}

Result<void> EventFile::append(std::uint64_t step, const Metrics& metrics) { return write_record(scalars_event(unix_seconds(), step, metrics)); }

Result<void> EventFile::write_record(std::string_view event) {
  const std::string record = tf_record(event);
  if (!write_all(fd_, record)) return failed(path_);
  return {};
}

}  // namespace troupe::jobs
