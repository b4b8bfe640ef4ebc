#pragma once

// Messages as bytes: little-endian scalars as they are, sizes as LEB128, arrays of arithmetic types as one block. Format: wire.md.

#include <cmath>
#include <cstring>
#include <limits>

#include "actors/base/archive.hpp"
#include "actors/base/bytes.hpp"
#include "actors/base/digest.hpp"
#include "actors/base/error.hpp"

namespace troupe {

/// Appends to a buffer that the caller owns and may reuse. In digest mode NaNs are canonical and what names a place
/// (a rank hint in an actor's reference) is left out, so equal content has equal bytes wherever it ran.
class WireWriter : public SavingArchive<WireWriter> {
 public:
  enum class Mode { wire, digest };
  explicit WireWriter(Bytes& out, Mode mode = Mode::wire) : out_(out), mode_(mode) {}

  /// Types ask this before they save a rank or another fact of the layout.
  bool omits_placement() const { return mode_ == Mode::digest; }

  template <class T>
  void scalar(T value) {
    if constexpr (std::floating_point<T>) {
      if (mode_ == Mode::digest && std::isnan(value)) value = std::numeric_limits<T>::quiet_NaN();
    }
    append(&value, sizeof(T));
  }
  void text(std::string_view value) {
    size(value.size());
    append(value.data(), value.size());
  }
  template <class T>
  void array(std::span<const T> values, std::span<const std::uint64_t> shape) {
    size(shape.size());
    for (std::uint64_t extent : shape) size(extent);
    size(values.size());
    if constexpr (std::floating_point<T>) {
      if (mode_ == Mode::digest) {
        const std::size_t start = out_.size();
        append(values.data(), values.size_bytes());
        return canonicalise<T>(out_.data() + start, values.size());
      }
    }
    append(values.data(), values.size_bytes());
  }
  void absent() { out_.push_back(std::byte{0}); }
  void present() { out_.push_back(std::byte{1}); }
  void begin_list(std::uint64_t count) {
    size(count);
    ++depth_;
  }
  void end_list() { --depth_; }
  void begin_record() { ++depth_; }
  void end_record() { --depth_; }
  void name(const char*) {
    if (field_starts_ != nullptr && depth_ == 1) field_starts_->push_back(out_.size());
  }

  /// From now on, where each top-level field's bytes start goes into `starts`.
  void mark_fields(std::vector<std::size_t>* starts) { field_starts_ = starts; }

  void size(std::uint64_t value) {
    while (value >= 128) {
      out_.push_back(static_cast<std::byte>(value | 128));
      value >>= 7;
    }
    out_.push_back(static_cast<std::byte>(value));
  }

 private:
  void append(const void* data, std::size_t bytes) {
    const auto* first = static_cast<const std::byte*>(data);
    out_.insert(out_.end(), first, first + bytes);
  }
  template <class T>
  static void canonicalise(std::byte* at, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i, at += sizeof(T)) {
      T value;
      std::memcpy(&value, at, sizeof(T));
      if (std::isnan(value)) {
        value = std::numeric_limits<T>::quiet_NaN();
        std::memcpy(at, &value, sizeof(T));
      }
    }
  }

  Bytes& out_;
  Mode mode_;
  int depth_ = 0;
  std::vector<std::size_t>* field_starts_ = nullptr;
};

/// Reads what WireWriter wrote in wire mode. Trusts nothing: sizes are checked against what is left before memory is taken, nesting is
/// bounded. Throws ArchiveError; use decode() where bytes come from outside.
class WireReader : public LoadingArchive<WireReader> {
 public:
  explicit WireReader(BytesView in) : in_(in) {}

  bool omits_placement() const { return false; }

  template <class T>
  void scalar(T& value) {
    const std::byte* from = take(sizeof(T));
    if constexpr (std::same_as<T, bool>) {
      if (std::to_integer<unsigned>(*from) > 1) fail("want a boolean of 0 or 1");
      value = *from != std::byte{0};
    } else {
      std::memcpy(&value, from, sizeof(T));
    }
  }
  void text(std::string& value) {
    const std::uint64_t count = size();
    const std::byte* from = take(count);
    value.assign(reinterpret_cast<const char*>(from), count);
  }
  template <class T>
  void array(std::vector<T>& values, std::vector<std::uint64_t>* shape) {
    const std::uint64_t dimensions = size();
    if (dimensions > left()) fail("more dimensions than bytes");
    std::vector<std::uint64_t> extents(dimensions);
    for (std::uint64_t& extent : extents) extent = size();
    const std::uint64_t count = size();
    if (count > left() / sizeof(T)) fail("array longer than the bytes that are left");
    values.resize(count);
    const std::byte* from = take(count * sizeof(T));
    if (count > 0) std::memcpy(values.data(), from, count * sizeof(T));
    if (shape != nullptr) *shape = std::move(extents);
  }
  void bytes(Bytes& values) {
    if (size() != 0) fail("want bytes without a shape");
    const std::uint64_t count = size();
    const std::byte* from = take(count);
    values.assign(from, from + count);
  }
  bool take_present() {
    const std::byte flag = *take(1);
    if (std::to_integer<unsigned>(flag) > 1) fail("want a presence flag of 0 or 1");
    return flag != std::byte{0};
  }
  std::uint64_t begin_list(std::size_t element_bytes_min) {
    const std::uint64_t count = size();
    if (element_bytes_min > 0 ? count > left() : count > kEmptyElementsMax) fail("list longer than the bytes that are left");
    deeper();
    return count;
  }
  void end_list() { --depth_; }
  void begin_record() { deeper(); }
  void end_record() { --depth_; }
  void name(const char*) {}

  std::uint64_t size() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto part = std::to_integer<std::uint64_t>(*take(1));
      if (shift == 63 && part > 1) break;
      value |= (part & 127) << shift;
      if (part < 128) return value;
    }
    fail("a size of more than 64 bits");
  }
  std::size_t left() const { return in_.size() - at_; }
  std::size_t offset() const { return at_; }

 private:
  static constexpr int kDepthMax = 200;
  static constexpr std::uint64_t kEmptyElementsMax = 1 << 20;

  const std::byte* take(std::uint64_t count) {
    if (count > left()) fail("truncated");
    const std::byte* at = in_.data() + at_;
    at_ += count;
    return at;
  }
  void deeper() {
    if (++depth_ > kDepthMax) fail("nested too deeply");
  }
  [[noreturn]] void fail(const char* what) const {
    throw ArchiveError{std::string(what) + " at byte " + std::to_string(at_) + " of " + std::to_string(in_.size())};
  }

  BytesView in_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

template <class T>
void encode(Bytes& out, const T& value) {
  WireWriter writer(out);
  writer & value;
}

/// All of `in` must be used. Errors: corrupt, with the offset; `value` is then half-read.
template <class T>
Result<void> decode_into(BytesView in, T& value) {
  try {
    WireReader reader(in);
    reader & value;
    if (reader.left() != 0) return Error{ErrorCode::corrupt, std::to_string(reader.left()) + " bytes left over"};
  } catch (const ArchiveError& error) {
    return Error{ErrorCode::corrupt, error.detail};
  }
  return {};
}

template <class T>
Result<T> decode(BytesView in) {
  T value{};
  if (Result<void> read = decode_into(in, value); !read) return std::move(read).error();
  return value;
}

/// Digest of a value's content in digest mode; uses a buffer of the thread's own.
template <class T>
std::uint64_t content_digest64(const T& value) {
  thread_local Bytes scratch;
  scratch.clear();
  WireWriter writer(scratch, WireWriter::Mode::digest);
  writer & value;
  return digest64(scratch);
}

template <class T>
Digest128 content_digest128(const T& value) {
  Bytes scratch;
  WireWriter writer(scratch, WireWriter::Mode::digest);
  writer & value;
  return digest128(scratch);
}

}  // namespace troupe
