#include "actors/base/value.hpp"

#include <cstring>

#include <fmt/format.h>

namespace troupe {
namespace {

using Kind = Value::Kind;

template <class T>
std::string element_text(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return fmt::format("{}", value);
}

std::string element_text(ScalarType type, const std::byte* at) {
  switch (type) {
    case ScalarType::boolean: return *at == std::byte{0} ? "false" : "true";
    case ScalarType::int8: return fmt::format("{}", static_cast<int>(static_cast<signed char>(*at)));
    case ScalarType::uint8: return fmt::format("{}", std::to_integer<unsigned>(*at));
    case ScalarType::int16: return element_text<std::int16_t>(at);
    case ScalarType::uint16: return element_text<std::uint16_t>(at);
    case ScalarType::int32: return element_text<std::int32_t>(at);
    case ScalarType::uint32: return element_text<std::uint32_t>(at);
    case ScalarType::int64: return element_text<std::int64_t>(at);
    case ScalarType::uint64: return element_text<std::uint64_t>(at);
    case ScalarType::float32: return element_text<float>(at);
    case ScalarType::float64: return element_text<double>(at);
  }
  return "?";
}

std::string_view to_string(Kind kind) {
  constexpr std::string_view names[] = {"nothing", "a scalar", "a text", "an array", "a list", "a record"};
  return names[static_cast<std::size_t>(kind)];
}

std::optional<Difference> array_difference(const Value& left, const Value& right) {
  const std::size_t width = size_of(left.type);
  for (std::size_t at = 0; at + width <= left.data.size(); at += width) {
    if (std::memcmp(left.data.data() + at, right.data.data() + at, width) == 0) continue;
    return Difference{fmt::format("[{}]", at / width), element_text(left.type, left.data.data() + at), element_text(right.type, right.data.data() + at)};
  }
  return std::nullopt;
}

}  // namespace

std::size_t size_of(ScalarType type) {
  constexpr std::size_t sizes[] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
  return sizes[static_cast<std::size_t>(type)];
}

std::string_view to_string(ScalarType type) {
  constexpr std::string_view names[] = {"bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float32", "float64"};
  return names[static_cast<std::size_t>(type)];
}

const Value* Value::find(std::string_view name) const {
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return &children[i];
  }
  return nullptr;
}

std::string Value::brief() const {
  switch (kind) {
    case Kind::absent: return "nothing";
    case Kind::scalar: return element_text(type, data.data());
    case Kind::text: return text.size() <= 60 ? '"' + text + '"' : '"' + text.substr(0, 57) + "…\"";
    case Kind::list: return fmt::format("list of {}", children.size());
    case Kind::record: return fmt::format("record of {} fields", children.size());
    case Kind::array: break;
  }
  const std::size_t width = size_of(type);
  const std::size_t count = data.size() / width;
  std::string out = fmt::format("{}[{}] {{", troupe::to_string(type), shape.empty() ? fmt::format("{}", count) : fmt::format("{}", fmt::join(shape, ", ")));
  for (std::size_t i = 0; i < count && i < 6; ++i) out += (i > 0 ? ", " : "") + element_text(type, data.data() + i * width);
  return out + (count > 6 ? ", …}" : "}");
}

std::optional<Difference> first_difference(const Value& left, const Value& right) {
  const bool comparable = left.kind == right.kind && left.type == right.type && left.shape == right.shape && left.data.size() == right.data.size() &&
                          left.names == right.names && left.children.size() == right.children.size();
  if (!comparable || left.text != right.text) return Difference{"", left.brief(), right.brief()};
  if (left.kind == Kind::scalar && left.data != right.data) return Difference{"", left.brief(), right.brief()};
  if (left.kind == Kind::array) return array_difference(left, right);
  for (std::size_t i = 0; i < left.children.size(); ++i) {
    auto inner = first_difference(left.children[i], right.children[i]);
    if (!inner) continue;
    const std::string here = left.kind == Kind::record ? left.names[i] : fmt::format("[{}]", i);
    const bool dot = !inner->path.empty() && inner->path.front() != '[';
    inner->path = here + (dot ? "." : "") + inner->path;
    return inner;
  }
  return std::nullopt;
}

ValueWriter::ValueWriter() { open_.push_back({.kind = Kind::list, .type = {}, .data = {}, .shape = {}, .text = {}, .names = {}, .children = {}}); }

Value ValueWriter::take() { return std::move(open_.front().children.at(0)); }

Bytes ValueWriter::block(const void* data, std::size_t bytes) {
  const auto* first = static_cast<const std::byte*>(data);
  return bytes == 0 ? Bytes{} : Bytes(first, first + bytes);
}

void ValueWriter::add(Value value) {
  Value& parent = open_.back();
  if (parent.kind == Kind::record) parent.names.push_back(next_name_.empty() ? std::to_string(parent.children.size()) : std::exchange(next_name_, {}));
  parent.children.push_back(std::move(value));
}

void ValueWriter::text(std::string_view value) {
  Value leaf;
  leaf.kind = Kind::text;
  leaf.text = value;
  add(std::move(leaf));
}

void ValueWriter::absent() { add({}); }

void ValueWriter::begin_list(std::uint64_t count) {
  pending_names_.push_back(std::exchange(next_name_, {}));
  Value list;
  list.kind = Kind::list;
  list.children.reserve(count);
  open_.push_back(std::move(list));
}

void ValueWriter::end_list() {
  Value done = std::move(open_.back());
  open_.pop_back();
  next_name_ = std::move(pending_names_.back());
  pending_names_.pop_back();
  add(std::move(done));
  next_name_.clear();
}

void ValueWriter::begin_record() {
  begin_list(0);
  open_.back().kind = Kind::record;
}
void ValueWriter::end_record() { end_list(); }
void ValueWriter::name(const char* name) { next_name_ = name; }

ValueReader::ValueReader(const Value& root) : root_(root) {}

std::string ValueReader::path() const {
  std::string out;
  for (const Level& level : open_) {
    if (level.at == 0 || level.at > level.value->children.size()) continue;
    const std::size_t i = level.at - 1;
    out += level.value->kind == Kind::record ? (out.empty() ? "" : ".") + level.value->names[i] : fmt::format("[{}]", i);
  }
  return out.empty() ? "the root" : out;
}

const Value& ValueReader::next(std::optional<Kind> kind) {
  const Value* found = &root_;
  const std::string name = std::exchange(next_name_, {});
  if (!open_.empty()) {
    Level& level = open_.back();
    if (!name.empty() && level.value->kind == Kind::record) {
      found = level.value->find(name);
      if (found == nullptr) throw ArchiveError{fmt::format("want a field {} in {}, got none", name, path())};
      level.at = static_cast<std::size_t>(found - level.value->children.data()) + 1;
    } else {
      if (level.at >= level.value->children.size()) throw ArchiveError{fmt::format("want more than {} elements in {}", level.value->children.size(), path())};
      found = &level.value->children[level.at++];
    }
  }
  if (kind && found->kind != *kind) throw ArchiveError{fmt::format("{}: want {}, got {}", path(), to_string(*kind), to_string(found->kind))};
  return *found;
}

void ValueReader::want_type(const Value& leaf, ScalarType type) const {
  if (leaf.type != type) throw ArchiveError{fmt::format("{}: want {}, got {}", path(), troupe::to_string(type), troupe::to_string(leaf.type))};
}

void ValueReader::text(std::string& value) { value = next(Kind::text).text; }
void ValueReader::bytes(Bytes& value) {
  const Value& leaf = next(Kind::array);
  want_type(leaf, ScalarType::uint8);
  value = leaf.data;
}

// A present optional is saved as its value alone, so this only looks ahead unless there is nothing.
bool ValueReader::take_present() {
  const std::string name = next_name_;
  const std::vector<Level> before = open_;
  if (next(std::nullopt).kind == Kind::absent) return false;
  next_name_ = name;
  open_ = before;
  return true;
}

std::uint64_t ValueReader::begin_list(std::size_t) {
  const Value& list = next(Kind::list);
  open_.push_back({&list, 0});
  return list.children.size();
}
void ValueReader::end_list() { open_.pop_back(); }
void ValueReader::begin_record() { open_.push_back({&next(Kind::record), 0}); }
void ValueReader::end_record() { open_.pop_back(); }
void ValueReader::name(const char* name) { next_name_ = name; }

}  // namespace troupe
