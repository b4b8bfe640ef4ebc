#include "actors/record/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace troupe::record {
namespace {

Error system_error(const std::filesystem::path& path, std::string_view verb) {
  return {ErrorCode::io, fmt::format("{}: cannot {}: {}", path.string(), verb, std::strerror(errno))};
}

/// Calls `use(bytes)` on one piece after another until the file ends.
template <class Use>
Result<void> read_blocks(const std::filesystem::path& path, std::uint64_t start, Use use) {
  constexpr std::size_t kBlock = 1U << 18U;
  Result<FileDescriptor> file = open_file(path, O_RDONLY);
  if (!file) return std::move(file).error();
  Bytes block(kBlock);
  for (std::uint64_t at = start;;) {
    const ssize_t got = ::pread(file->number(), block.data(), block.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path, "read");
    if (got == 0) return {};
    use(BytesView(block).first(static_cast<std::size_t>(got)));
    at += static_cast<std::uint64_t>(got);
  }
}

}  // namespace

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Result<FileDescriptor> open_file(const std::filesystem::path& path, int flags) {
  FileDescriptor file(::open(path.c_str(), flags | O_CLOEXEC, 0644));
  if (!file) return system_error(path, "open");
  return file;
}

Result<void> write_all(const FileDescriptor& file, const std::filesystem::path& path, BytesView bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(file.number(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return system_error(path, "write");
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
  return {};
}

Result<std::size_t> read_some(const FileDescriptor& file, const std::filesystem::path& path, std::span<std::byte> out) {
  std::size_t filled = 0;
  while (filled < out.size()) {
    const ssize_t got = ::read(file.number(), out.data() + filled, out.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path, "read");
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  return filled;
}

Result<Bytes> read_file(const std::filesystem::path& path) {
  Bytes out;
  Result<void> read = read_blocks(path, 0, [&](BytesView block) { out.insert(out.end(), block.begin(), block.end()); });
  if (!read) return std::move(read).error();
  return out;
}

Result<void> remove_file(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return system_error(path, "remove");
  return {};
}

Result<void> make_folder(const std::filesystem::path& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed) return Error{ErrorCode::io, fmt::format("{}: cannot make the folder: {}", path.string(), failed.message())};
  return {};
}

Result<FileDigest> digest_file(const std::filesystem::path& path, std::uint64_t start) {
  FileDigest out;
  Digester digester;
  Result<void> read = read_blocks(path, start, [&](BytesView block) {
    digester.add(block);
    out.bytes += block.size();
  });
  if (!read) return std::move(read).error();
  out.digest = digester.digest();
  return out;
}

Result<void> publish_file(const std::filesystem::path& partial, const std::filesystem::path& path) {
  Result<FileDescriptor> file = open_file(partial, O_RDWR);
  if (!file) return std::move(file).error();
  if (::fsync(file->number()) != 0) return system_error(partial, "flush to the disk");
  if (::rename(partial.c_str(), path.c_str()) != 0) return system_error(partial, "rename to " + path.string());
  Result<FileDescriptor> folder = open_file(path.has_parent_path() ? path.parent_path() : ".", O_RDONLY | O_DIRECTORY);
  if (!folder) return std::move(folder).error();
  // Some network file systems refuse to flush a folder; the rename itself is done.
  if (::fsync(folder->number()) != 0 && errno != EINVAL && errno != EBADF) return system_error(path.parent_path(), "flush the folder");
  return {};
}

}  // namespace troupe::record
