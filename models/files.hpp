#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "actors/base/bytes.hpp"
#include "actors/base/error.hpp"

namespace troupe::models {

/// A file open for reading at offsets. Its size is that of the moment it was opened; a read past what is there is an error.
class InputFile {
 public:
  static Result<InputFile> open(const std::filesystem::path& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  std::uint64_t size() const { return size_; }
  /// Fills `out` from `offset`. Errors: io.
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) const;

 private:
  InputFile(std::filesystem::path path, int fd, std::uint64_t size) : path_(std::move(path)), fd_(fd), size_(size) {}
  std::filesystem::path path_;
  int fd_;
  std::uint64_t size_;
};

/// A file written to `path` + ".partial" and renamed by commit: a reader sees the old file or the new one. Without commit the partial is removed.
class OutputFile {
 public:
  static Result<OutputFile> create(const std::filesystem::path& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  Result<void> append(BytesView bytes);
  /// Flushed to the disk, then renamed.
  Result<void> commit();

 private:
  OutputFile(std::filesystem::path path, std::filesystem::path partial, int fd) : path_(std::move(path)), partial_(std::move(partial)), fd_(fd) {}
  std::filesystem::path path_, partial_;
  int fd_;
};

/// Whole files. Errors: io, naming the path and what the system said.
Result<std::string> read_text(const std::filesystem::path& path);
Result<void> write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace troupe::models
