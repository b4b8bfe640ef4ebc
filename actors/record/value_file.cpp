#include "actors/record/value_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "actors/record/files.hpp"
#include "actors/record/hdf5.hpp"

namespace troupe::record {
namespace {

using hdf5::check;
using hdf5::Failure;
using hdf5::Handle;
using Kind = Value::Kind;

constexpr std::size_t kUserBlockBytes = 512;
constexpr std::string_view kMagic = "TROUPEH5";
constexpr std::uint32_t kVersion = 1;
constexpr const char* kKindAttribute = "troupe";
constexpr hsize_t kChunk = 4096;
constexpr int kDepthMax = 200;

// ---- The user block: what stands before the HDF5 file proper, and vouches for it.

Bytes user_block(const FileDigest& contents) {
  Bytes block(kUserBlockBytes);
  std::memcpy(block.data(), kMagic.data(), kMagic.size());
  std::memcpy(block.data() + 8, &kVersion, sizeof kVersion);
  std::memcpy(block.data() + 16, &contents.bytes, sizeof contents.bytes);
  const auto digest = contents.digest.canonical();
  std::memcpy(block.data() + 24, digest.data(), digest.size());
  return block;
}

std::string stored_digest(const Bytes& block) {
  std::string hex;
  for (std::size_t i = 24; i < 40; ++i) hex += fmt::format("{:02x}", std::to_integer<unsigned>(block[i]));
  return hex;
}

// ---- Types

hid_t memory_type(ScalarType type) {
  switch (type) {
    case ScalarType::boolean:
      return H5T_NATIVE_INT8;
    case ScalarType::int8:
      return H5T_STD_I8LE;
    case ScalarType::uint8:
      return H5T_STD_U8LE;
    case ScalarType::int16:
      return H5T_STD_I16LE;
    case ScalarType::uint16:
      return H5T_STD_U16LE;
    case ScalarType::int32:
      return H5T_STD_I32LE;
    case ScalarType::uint32:
      return H5T_STD_U32LE;
    case ScalarType::int64:
      return H5T_STD_I64LE;
    case ScalarType::uint64:
      return H5T_STD_U64LE;
    case ScalarType::float32:
      return H5T_IEEE_F32LE;
    case ScalarType::float64:
      return H5T_IEEE_F64LE;
  }
  throw Failure{"unknown scalar type"};
}

/// The enumeration by which h5py knows booleans.
Handle boolean_type() {
  Handle type(H5Tenum_create(H5T_NATIVE_INT8), "boolean type");
  for (const std::int8_t value : {std::int8_t{0}, std::int8_t{1}})
    check(H5Tenum_insert(type.id(), value == 0 ? "FALSE" : "TRUE", &value), "boolean type");
  return type;
}

Handle file_type(ScalarType type) {
  if (type == ScalarType::boolean) return boolean_type();
  return {H5Tcopy(memory_type(type)), "scalar type"};
}

Handle text_type(std::size_t bytes) {
  Handle type(H5Tcopy(H5T_C_S1), "text type");
  check(H5Tset_size(type.id(), bytes), "text type's size");
  check(H5Tset_strpad(type.id(), H5T_STR_NULLPAD), "text type's padding");
  check(H5Tset_cset(type.id(), H5T_CSET_UTF8), "text type's character set");
  return type;
}

ScalarType scalar_type(hid_t type, const std::string& path) {
  if (H5Tget_class(type) == H5T_ENUM) return ScalarType::boolean;
  for (int i = 1; i <= static_cast<int>(ScalarType::float64); ++i) {
    const auto candidate = static_cast<ScalarType>(i);
    if (H5Tequal(type, memory_type(candidate)) > 0) return candidate;
  }
  throw Failure{path + ": want a little-endian number, got another type"};
}

// ---- Names: HDF5 splits paths at '/', and "." is the group itself.

std::string escaped(const std::string& name) {
  if (name.empty()) return "%";
  if (name == ".") return "%2E";
  std::string out;
  for (const char c : name) out += c == '/' ? "%2F" : c == '%' ? "%25" : std::string(1, c);
  return out;
}

std::string unescaped(const std::string& name) {
  if (name == "%") return {};
  std::string out;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const std::string_view code = std::string_view(name).substr(i, 3);
    const char meant = code == "%2F" ? '/' : code == "%25" ? '%' : code == "%2E" ? '.' : '\0';
    out += meant != '\0' ? meant : name[i];
    if (meant != '\0') i += 2;
  }
  return out;
}

bool all_of_kind(const std::vector<Value>& children, Kind kind) {
  return !children.empty() && std::all_of(children.begin(), children.end(), [&](const Value& child) { return child.kind == kind; });
}

// ---- Writing

class TreeWriter {
 public:
  TreeWriter(hid_t file, bool compress) : file_(file), compress_(compress) {}

  void root(const Value& value) {
    if (value.kind == Kind::record) return children(file_, "", value);
    mark(file_, "leaf", "/");
    put(file_, "value", "/value", value);
  }

  void link(const ExternalLink& link) {
    Handle properties(H5Pcreate(H5P_LINK_CREATE), "link properties");
    check(H5Pset_create_intermediate_group(properties.id(), 1), "link properties");
    check(H5Lcreate_external(link.file.c_str(), link.object.c_str(), file_, link.path.c_str(), properties.id(), H5P_DEFAULT), link.path);
  }

  static void order_links(hid_t properties) {
    check(H5Pset_link_creation_order(properties, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED), "group properties");
    check(H5Pset_link_phase_change(properties, 64, 32), "group properties");
    check(H5Pset_obj_track_times(properties, 0), "group properties");
  }

 private:
  void mark(hid_t object, std::string_view kind, const std::string& path) {
    Handle type = text_type(kind.size());
    Handle space(H5Screate(H5S_SCALAR), path);
    Handle attribute(H5Acreate2(object, kKindAttribute, type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT), path);
    check(H5Awrite(attribute.id(), type.id(), kind.data()), path);
  }

  void children(hid_t group, const std::string& path, const Value& value) {
    for (std::size_t i = 0; i < value.children.size(); ++i) {
      const std::string name = value.kind == Kind::record ? escaped(value.names.at(i)) : std::to_string(i);
      put(group, name, path + "/" + name, value.children[i]);
    }
  }

  void put(hid_t parent, const std::string& name, const std::string& path, const Value& value) {
    switch (value.kind) {
      case Kind::absent:
        return absent(parent, name, path);
      case Kind::scalar:
        return scalar(parent, name, path, value);
      case Kind::text:
        return text(parent, name, path, value.text);
      case Kind::array:
        return array(parent, name, path, value);
      case Kind::list:
        return list(parent, name, path, value);
      case Kind::record:
        return group(parent, name, path, value);
    }
  }

  void absent(hid_t parent, const std::string& name, const std::string& path) {
    Handle space(H5Screate(H5S_NULL), path);
    Handle set = dataset(parent, name, path, H5T_STD_U8LE, space.id(), nullptr);
    mark(set.id(), "absent", path);
  }

  void scalar(hid_t parent, const std::string& name, const std::string& path, const Value& value) {
    if (value.data.size() != size_of(value.type))
      throw Failure{fmt::format("{}: want {} bytes of a scalar, got {}", path, size_of(value.type), value.data.size())};
    Handle type = file_type(value.type);
    Handle space(H5Screate(H5S_SCALAR), path);
    dataset(parent, name, path, type.id(), space.id(), value.data.data());
  }

  // Of its own length, so that zero bytes inside survive; HDF5 has no text of length 0, hence the null space.
  void text(hid_t parent, const std::string& name, const std::string& path, const std::string& text) {
    Handle type = text_type(std::max<std::size_t>(text.size(), 1));
    Handle space(H5Screate(text.empty() ? H5S_NULL : H5S_SCALAR), path);
    dataset(parent, name, path, type.id(), space.id(), text.empty() ? nullptr : text.data());
  }

  void array(hid_t parent, const std::string& name, const std::string& path, const Value& value) {
    const std::uint64_t count = value.data.size() / size_of(value.type);
    std::vector<hsize_t> shape(value.shape.begin(), value.shape.end());
    if (shape.empty()) shape.push_back(count);
    std::uint64_t elements = 1;
    bool fits = shape.size() <= H5S_MAX_RANK && value.data.size() % size_of(value.type) == 0;
    for (const hsize_t extent : shape) fits = fits && !__builtin_mul_overflow(elements, extent, &elements);
    if (!fits || elements != count)
      throw Failure{
          fmt::format("{}: want a shape of {} elements and at most {} dimensions, got {}", path, count, H5S_MAX_RANK, value.brief())};
    Handle type = file_type(value.type);
    Handle space(H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), path);
    Handle set = dataset(parent, name, path, type.id(), space.id(), value.data.data(), compress_ && shape.size() == 1 && count > kChunk);
    if (value.shape.size() == 1) mark(set.id(), "shaped", path);
  }

  void list(hid_t parent, const std::string& name, const std::string& path, const Value& value) {
    const bool one_type =
        all_of_kind(value.children, Kind::scalar) && std::all_of(value.children.begin(), value.children.end(), [&](const Value& child) {
          return child.type == value.children[0].type && child.data.size() == size_of(child.type);
        });
    if (one_type) return scalars(parent, name, path, value);
    const bool plain_texts = all_of_kind(value.children, Kind::text) &&
                             std::all_of(value.children.begin(), value.children.end(),
                                         [](const Value& child) { return child.text.find('\0') == std::string::npos; });
    if (plain_texts) return texts(parent, name, path, value);
    group(parent, name, path, value);
  }

  void scalars(hid_t parent, const std::string& name, const std::string& path, const Value& value) {
    Bytes joined;
    for (const Value& child : value.children) joined.insert(joined.end(), child.data.begin(), child.data.end());
    const hsize_t count = value.children.size();
    Handle type = file_type(value.children[0].type);
    Handle space(H5Screate_simple(1, &count, nullptr), path);
    Handle set = dataset(parent, name, path, type.id(), space.id(), joined.data());
    mark(set.id(), "list", path);
  }

  void texts(hid_t parent, const std::string& name, const std::string& path, const Value& value) {
    std::vector<const char*> pointers;
    for (const Value& child : value.children) pointers.push_back(child.text.c_str());
    const hsize_t count = value.children.size();
    Handle type = text_type(H5T_VARIABLE);
    Handle space(H5Screate_simple(1, &count, nullptr), path);
    Handle set = dataset(parent, name, path, type.id(), space.id(), pointers.data());
    mark(set.id(), "list", path);
  }

  void group(hid_t parent, const std::string& name, const std::string& path, const Value& value) {
    Handle properties(H5Pcreate(H5P_GROUP_CREATE), path);
    order_links(properties.id());
    Handle made(H5Gcreate2(parent, name.c_str(), H5P_DEFAULT, properties.id(), H5P_DEFAULT), path);
    if (value.kind == Kind::list) mark(made.id(), "list", path);
    children(made.id(), path, value);
  }

  Handle dataset(hid_t parent, const std::string& name, const std::string& path, hid_t type, hid_t space, const void* data,
                 bool chunked = false) {
    Handle properties(H5Pcreate(H5P_DATASET_CREATE), path);
    check(H5Pset_obj_track_times(properties.id(), 0), path);
    if (chunked) {
      check(H5Pset_chunk(properties.id(), 1, &kChunk), path);
      check(H5Pset_shuffle(properties.id()), path);
      check(H5Pset_deflate(properties.id(), 1), path);
    }
    Handle set(H5Dcreate2(parent, name.c_str(), type, space, H5P_DEFAULT, properties.id(), H5P_DEFAULT), path);
    if (data != nullptr && H5Sget_simple_extent_npoints(space) > 0)
      check(H5Dwrite(set.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data), path);
    return set;
  }

  hid_t file_;
  bool compress_;
};

// ---- Reading

herr_t add_name(hid_t, const char* name, const H5L_info_t* info, void* out) {
  if (info->type == H5L_TYPE_HARD) static_cast<std::vector<std::string>*>(out)->emplace_back(name);
  return 0;
}

class TreeReader {
 public:
  Value root(hid_t file) {
    Handle group(H5Gopen2(file, "/", H5P_DEFAULT), "/");
    if (mark(group.id(), "/") == "leaf") return read(group.id(), "value", "/value", 0);
    return children(group.id(), "", 0);
  }

 private:
  std::string mark(hid_t object, const std::string& path) {
    if (check(H5Aexists(object, kKindAttribute), path) == 0) return {};
    Handle attribute(H5Aopen(object, kKindAttribute, H5P_DEFAULT), path);
    Handle type(H5Aget_type(attribute.id()), path);
    std::string kind(H5Tget_size(type.id()), '\0');
    check(H5Aread(attribute.id(), type.id(), kind.data()), path);
    return kind;
  }

  Value children(hid_t group, const std::string& path, int depth) {
    if (depth > kDepthMax) throw Failure{path + ": nested too deeply"};
    Value out;
    out.kind = Kind::record;
    std::vector<std::string> names;
    check(H5Literate(group, H5_INDEX_CRT_ORDER, H5_ITER_INC, nullptr, &add_name, &names), path);
    for (const std::string& name : names) {
      out.names.push_back(unescaped(name));
      out.children.push_back(read(group, name, path + "/" + name, depth + 1));
    }
    return out;
  }

  Value read(hid_t parent, const std::string& name, const std::string& path, int depth) {
    Handle object(H5Oopen(parent, name.c_str(), H5P_DEFAULT), path);
    const std::string kind = mark(object.id(), path);
    if (H5Iget_type(object.id()) != H5I_GROUP) return dataset(object.id(), path, kind);
    Value out = children(object.id(), path, depth);
    if (kind == "list") {
      out.kind = Kind::list;
      out.names.clear();
    }
    return out;
  }

  Value dataset(hid_t set, const std::string& path, const std::string& kind) {
    Value out;
    if (kind == "absent") return out;
    Handle type(H5Dget_type(set), path);
    Handle space(H5Dget_space(set), path);
    const auto count = static_cast<std::size_t>(check(H5Sget_simple_extent_npoints(space.id()), path));
    if (H5Tget_class(type.id()) == H5T_STRING)
      return kind == "list" ? texts(set, type.id(), space.id(), count, path) : text(set, type.id(), count, path);
    out.type = scalar_type(type.id(), path);
    out.data.resize(count * size_of(out.type));
    if (count > 0) check(H5Dread(set, type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data.data()), path);
    if (kind == "list") return split(out);
    const int dimensions = check(H5Sget_simple_extent_ndims(space.id()), path);
    out.kind = dimensions == 0 ? Kind::scalar : Kind::array;
    if (dimensions > 1 || kind == "shaped") {
      std::vector<hsize_t> shape(static_cast<std::size_t>(dimensions));
      check(H5Sget_simple_extent_dims(space.id(), shape.data(), nullptr), path);
      out.shape.assign(shape.begin(), shape.end());
    }
    return out;
  }

  Value text(hid_t set, hid_t type, std::size_t count, const std::string& path) {
    Value out;
    out.kind = Kind::text;
    if (count == 0) return out;
    if (count != 1 || H5Tis_variable_str(type) != 0) throw Failure{path + ": want one text of fixed length, got another"};
    out.text.resize(H5Tget_size(type));
    check(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out.text.data()), path);
    return out;
  }

  Value texts(hid_t set, hid_t type, hid_t space, std::size_t count, const std::string& path) {
    if (H5Tis_variable_str(type) <= 0) throw Failure{path + ": want texts of any length, got a fixed one"};
    std::vector<char*> pointers(count);
    check(H5Dread(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, pointers.data()), path);
    Value out;
    out.kind = Kind::list;
    for (const char* pointer : pointers) {
      Value& child = out.children.emplace_back();
      child.kind = Kind::text;
      if (pointer != nullptr) child.text = pointer;
    }
    check(H5Dvlen_reclaim(type, space, H5P_DEFAULT, pointers.data()), path);
    return out;
  }

  static Value split(const Value& joined) {
    Value out;
    out.kind = Kind::list;
    const std::size_t width = size_of(joined.type);
    for (auto at = joined.data.begin(); at != joined.data.end(); at += static_cast<std::ptrdiff_t>(width)) {
      Value& child = out.children.emplace_back();
      child.kind = Kind::scalar;
      child.type = joined.type;
      child.data.assign(at, at + static_cast<std::ptrdiff_t>(width));
    }
    return out;
  }
};

// ---- The file as a whole

/// An HDF5 file in memory, so that a full disk is seen by our own write and not inside HDF5, which cannot close a file it failed to flush.
Handle memory_file() {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), "file properties");
  check(H5Pset_fapl_core(access.id(), 1U << 20U, 0), "file properties");
  check(H5Pset_libver_bounds(access.id(), H5F_LIBVER_V18, H5F_LIBVER_V18), "file properties");
  Handle creation(H5Pcreate(H5P_FILE_CREATE), "file properties");
  check(H5Pset_userblock(creation.id(), kUserBlockBytes), "file properties");
  TreeWriter::order_links(creation.id());
  return {H5Fcreate("troupe", H5F_ACC_TRUNC, creation.id(), access.id()), "file in memory"};
}

/// The bytes of a flushed file in memory, user block included.
std::span<std::byte> contents_of(hid_t file) {
  check(H5Fflush(file, H5F_SCOPE_GLOBAL), "flush");
  const auto after_block = static_cast<std::size_t>(check(H5Fget_file_image(file, nullptr, 0), "size"));
  void** memory = nullptr;
  check(H5Fget_vfd_handle(file, H5P_DEFAULT, reinterpret_cast<void**>(&memory)), "file's memory");
  return {static_cast<std::byte*>(*memory), kUserBlockBytes + after_block};
}

Result<void> store(const std::filesystem::path& path, std::span<std::byte> contents) {
  const BytesView rest = contents.subspan(kUserBlockBytes);
  const Bytes block = user_block({.bytes = rest.size(), .digest = digest128(rest)});
  std::filesystem::path partial = path;
  partial += ".partial";
  Result<void> done;
  {
    Result<FileDescriptor> file = open_file(partial, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file) return std::move(file).error();
    done = write_all(*file, partial, block);
    if (done) done = write_all(*file, partial, rest);
  }
  if (done) done = publish_file(partial, path);
  if (!done) (void)remove_file(partial);
  return done;
}

Error corrupt(const std::filesystem::path& path, std::string detail) {
  return {ErrorCode::corrupt, fmt::format("{}: {}", path.string(), detail)};
}

}  // namespace

Result<void> write_value_file(const std::filesystem::path& path, const Value& value, const ValueFileOptions& options) {
  hdf5::silence();
  try {
    Handle file = memory_file();
    TreeWriter writer(file.id(), options.compress);
    writer.root(value);
    for (const ExternalLink& link : options.links) writer.link(link);
    return store(path, contents_of(file.id()));
  } catch (const Failure& failure) {
    return Error{ErrorCode::bad_input, fmt::format("{}: {}", path.string(), failure.detail)};
  }
}

Result<Digest128> verify_value_file(const std::filesystem::path& path) {
  Bytes block(kUserBlockBytes);
  {
    Result<FileDescriptor> file = open_file(path, O_RDONLY);
    if (!file) return std::move(file).error();
    Result<std::size_t> got = read_some(*file, path, block);
    if (!got) return std::move(got).error();
    if (*got != kUserBlockBytes) return corrupt(path, fmt::format("want a first block of {} bytes, got {}", kUserBlockBytes, *got));
  }
  if (std::memcmp(block.data(), kMagic.data(), kMagic.size()) != 0)
    return corrupt(path, "want TROUPEH5 in the first bytes, got something else");
  std::uint32_t version = 0;
  std::memcpy(&version, block.data() + 8, sizeof version);
  if (version != kVersion)
    return Error{ErrorCode::unsupported, fmt::format("{}: want format {}, got {}", path.string(), kVersion, version)};
  Result<FileDigest> contents = digest_file(path, kUserBlockBytes);
  if (!contents) return std::move(contents).error();
  std::uint64_t length = 0;
  std::memcpy(&length, block.data() + 16, sizeof length);
  if (length != contents->bytes) return corrupt(path, fmt::format("want {} bytes after the first block, got {}", length, contents->bytes));
  if (stored_digest(block) != contents->digest.hex())
    return corrupt(path, fmt::format("contents: want digest {}, got {}", stored_digest(block), contents->digest.hex()));
  if (block != user_block(*contents)) return corrupt(path, "want zeros where the first block stores nothing, got something else");
  return contents->digest;
}

Result<Value> read_value_file(const std::filesystem::path& path) {
  if (Result<Digest128> verified = verify_value_file(path); !verified) return std::move(verified).error();
  hdf5::silence();
  try {
    Handle access(H5Pcreate(H5P_FILE_ACCESS), "file properties");
    check(H5Pset_file_locking(access.id(), false, true), "file properties");
    Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.id()), "open");
    return TreeReader().root(file.id());
  } catch (const Failure& failure) {
    return corrupt(path, failure.detail);
  }
}

}  // namespace troupe::record
