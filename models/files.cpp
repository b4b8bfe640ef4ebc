#include "models/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace troupe::models {
namespace {

Error system_error(const std::filesystem::path& path, std::string_view verb) {
  return {ErrorCode::io, fmt::format("{}: cannot {}: {}", path.string(), verb, std::strerror(errno))};
}

}  // namespace

Result<InputFile> InputFile::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return system_error(path, "open");
  InputFile file(path, fd, 0);
  struct stat status {};
  if (::fstat(fd, &status) != 0) return system_error(path, "read its size");
  if (!S_ISREG(status.st_mode)) return Error{ErrorCode::io, fmt::format("{}: want a file, got something else", path.string())};
  file.size_ = static_cast<std::uint64_t>(status.st_size);
  return file;
}

InputFile::InputFile(InputFile&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), size_(other.size_) {}

InputFile::~InputFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> InputFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path_, "read");
    if (got == 0) return Error{ErrorCode::io, fmt::format("{}: want {} more bytes at offset {}, got the file's end", path_.string(), out.size(), offset)};
    offset += static_cast<std::uint64_t>(got);
    out = out.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

Result<OutputFile> OutputFile::create(const std::filesystem::path& path) {
  std::filesystem::path partial = path;
  partial += ".partial";
  const int fd = ::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return system_error(partial, "create");
  return OutputFile(path, std::move(partial), fd);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), partial_(std::move(other.partial_)), fd_(std::exchange(other.fd_, -1)) {}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(partial_.c_str());
}

Result<void> OutputFile::append(BytesView bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error(partial_, "write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> OutputFile::commit() {
  if (::fsync(fd_) != 0) return system_error(partial_, "flush");
  if (::rename(partial_.c_str(), path_.c_str()) != 0) return system_error(path_, "rename to");
  ::close(std::exchange(fd_, -1));
  return {};
}

Result<std::string> read_text(const std::filesystem::path& path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file) return file.error();
  std::string text(file->size(), '\0');
  if (Result<void> read = file->read_at(0, std::as_writable_bytes(std::span(text))); !read) return read.error();
  return text;
}

Result<void> write_text(const std::filesystem::path& path, std::string_view text) {
  Result<OutputFile> file = OutputFile::create(path);
  if (!file) return file.error();
  if (Result<void> appended = file->append(std::as_bytes(std::span(text))); !appended) return appended;
  return file->commit();
}

}  // namespace troupe::models
