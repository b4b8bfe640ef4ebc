#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "actors/base/bytes.hpp"
#include "actors/base/digest.hpp"
#include "actors/base/error.hpp"

namespace troupe::record {

/// An open descriptor, closed with its owner.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept;
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();

  int number() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

/// Errors of all of these: io, naming the path and what the system said.
Result<FileDescriptor> open_file(const std::filesystem::path& path, int flags);
Result<void> write_all(const FileDescriptor& file, const std::filesystem::path& path, BytesView bytes);
/// Fills `out` from where the file stands, or as far as it goes. Returns the bytes read.
Result<std::size_t> read_some(const FileDescriptor& file, const std::filesystem::path& path, std::span<std::byte> out);
Result<Bytes> read_file(const std::filesystem::path& path);
Result<void> remove_file(const std::filesystem::path& path);  ///< one that is not there is removed already
Result<void> make_folder(const std::filesystem::path& path);

struct FileDigest {
  std::uint64_t bytes = 0;
  Digest128 digest;
};
/// Of the bytes from `start` to the end.
Result<FileDigest> digest_file(const std::filesystem::path& path, std::uint64_t start = 0);

/// Makes `partial`, whose bytes must be complete, durable and then visible as `path`: a reader sees the old file or the new one.
Result<void> publish_file(const std::filesystem::path& partial, const std::filesystem::path& path);

}  // namespace troupe::record
