#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "actors/base/archive.hpp"
#include "actors/base/bytes.hpp"
#include "actors/base/error.hpp"

namespace troupe {

enum class ScalarType : std::uint8_t { boolean = 0, int8, uint8, int16, uint16, int32, uint32, int64, uint64, float32, float64 };

std::size_t size_of(ScalarType type);
std::string_view to_string(ScalarType type);

template <class T>
constexpr ScalarType scalar_type_of() {
  if constexpr (std::same_as<T, bool>) return ScalarType::boolean;
  else if constexpr (std::floating_point<T>) return sizeof(T) == 4 ? ScalarType::float32 : ScalarType::float64;
  else {
    constexpr int base = sizeof(T) == 1 ? 1 : sizeof(T) == 2 ? 3 : sizeof(T) == 4 ? 5 : 7;
    return static_cast<ScalarType>(base + (std::is_unsigned_v<T> ? 1 : 0));
  }
}

/// What one `serialize` shows, as a tree: what checkpoints store, the debugger prints and diffs compare.
/// A record's children carry the names of TROUPE_FIELDS or of nvp; unnamed fields are "0", "1", ….
struct Value {
  enum class Kind : std::uint8_t { absent, scalar, text, array, list, record };

  Kind kind = Kind::absent;
  ScalarType type = ScalarType::uint8;  ///< of a scalar or an array's elements
  Bytes data;                           ///< scalar: its bytes; array: row-major elements
  std::vector<std::uint64_t> shape;     ///< of an array; empty means one dimension of data.size() / size_of(type)
  std::string text;
  std::vector<std::string> names;       ///< of a record's children, in the order of serialize
  std::vector<Value> children;          ///< of a list or a record

  const Value* find(std::string_view name) const;
  std::string brief() const;  ///< one line: a scalar's value, a text in quotes, an array's type, shape and first elements
};

/// Where two trees first differ, in the order of serialize: "weights[3].scale", and both sides in brief.
struct Difference {
  std::string path;
  std::string left;
  std::string right;
};
std::optional<Difference> first_difference(const Value& left, const Value& right);

class ValueWriter : public SavingArchive<ValueWriter> {
 public:
  ValueWriter();
  bool omits_placement() const { return true; }
  Value take();

  template <class T>
  void scalar(T value) {
    Value leaf{.kind = Value::Kind::scalar, .type = scalar_type_of<T>(), .data = block(&value, sizeof(T)), .shape = {}, .text = {}, .names = {}, .children = {}};
    add(std::move(leaf));
  }
  template <class T>
  void array(std::span<const T> values, std::span<const std::uint64_t> shape) {
    Value leaf{.kind = Value::Kind::array, .type = scalar_type_of<T>(), .data = block(values.data(), values.size_bytes()),
               .shape = {shape.begin(), shape.end()}, .text = {}, .names = {}, .children = {}};
    add(std::move(leaf));
  }
  void text(std::string_view value);
  void absent();
  void present() {}
  void begin_list(std::uint64_t count);
  void end_list();
  void begin_record();
  void end_record();
  void name(const char* name);

 private:
  static Bytes block(const void* data, std::size_t bytes);
  void add(Value value);

  std::vector<Value> open_;
  std::vector<std::string> pending_names_;
  std::string next_name_;
};

/// Fields are found by name, so a state whose fields moved still loads; a missing one is an ArchiveError with its path.
class ValueReader : public LoadingArchive<ValueReader> {
 public:
  explicit ValueReader(const Value& root);
  bool omits_placement() const { return true; }

  template <class T>
  void scalar(T& value) {
    const Value& leaf = next(Value::Kind::scalar);
    want_type(leaf, scalar_type_of<T>());
    std::memcpy(&value, leaf.data.data(), sizeof(T));
  }
  template <class T>
  void array(std::vector<T>& values, std::vector<std::uint64_t>* shape) {
    const Value& leaf = next(Value::Kind::array);
    want_type(leaf, scalar_type_of<T>());
    values.resize(leaf.data.size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), leaf.data.data(), values.size() * sizeof(T));
    if (shape != nullptr) *shape = leaf.shape;
  }
  void text(std::string& value);
  void bytes(Bytes& value);
  bool take_present();
  std::uint64_t begin_list(std::size_t);
  void end_list();
  void begin_record();
  void end_record();
  void name(const char* name);

 private:
  struct Level {
    const Value* value;
    std::size_t at;
  };
  const Value& next(std::optional<Value::Kind> kind);
  void want_type(const Value& leaf, ScalarType type) const;
  std::string path() const;

  const Value& root_;
  std::vector<Level> open_;
  std::string next_name_;
};

template <class T>
Value to_value(const T& object) {
  ValueWriter writer;
  writer & object;
  return writer.take();
}

/// Errors: corrupt, naming the field.
template <class T>
Result<void> from_value(const Value& value, T& object) {
  try {
    ValueReader reader(value);
    reader & object;
  } catch (const ArchiveError& error) {
    return Error{ErrorCode::corrupt, error.detail};
  }
  return {};
}

}  // namespace troupe
