#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "actors/base/digest.hpp"
#include "actors/base/error.hpp"
#include "actors/base/value.hpp"

namespace troupe::record {

/// "PATH in this file is the object `object` of the file `file`", relative to this file's folder; readers of the tree skip it.
struct ExternalLink {
  std::string path;
  std::string file;
  std::string object = "/";
};

struct ValueFileOptions {
  bool compress = false;  ///< arrays of over 4096 elements: shuffle and deflate-1, in chunks of 4096
  std::vector<ExternalLink> links;
};

/// Writes a tree as HDF5 groups and datasets (value_file.md), aside, then durable, then renamed. Equal trees give equal bytes.
/// Errors: io; bad_input for a tree that HDF5 cannot hold (a shape that does not fit its data, over 32 dimensions, a name twice), naming
/// the object.
Result<void> write_value_file(const std::filesystem::path& path, const Value& value, const ValueFileOptions& options = {});

/// Checks length and digest of the whole file before anything in it is trusted.
/// Errors: io; corrupt, naming file, object, what was wanted and what was got.
Result<Value> read_value_file(const std::filesystem::path& path);

/// What read_value_file checks first, alone. Returns the stored digest of the contents.
Result<Digest128> verify_value_file(const std::filesystem::path& path);

/// write_value_file of anything with `serialize`.
template <class T>
Result<void> save_value_file(const std::filesystem::path& path, const T& object, const ValueFileOptions& options = {}) {
  return write_value_file(path, to_value(object), options);
}
template <class T>
Result<T> load_value_file(const std::filesystem::path& path) {
  Result<Value> value = read_value_file(path);
  if (!value) return std::move(value).error();
  T object{};
  if (Result<void> read = from_value(*value, object); !read) return Error{read.error().code, path.string() + ": " + read.error().detail};
  return object;
}

}  // namespace troupe::record
