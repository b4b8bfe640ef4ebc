#include "models/safetensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "models/files.hpp"
#include "models/json_reader.hpp"

namespace troupe::models {
namespace {

static_assert(std::endian::native == std::endian::little, "files are little-endian, and are read as they are");

constexpr std::uint64_t kHeaderMax = 100'000'000;  // the reference library's own limit
constexpr std::size_t kBlock = 1U << 16U;          // elements converted at a time

struct Kind {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::array<Kind, 14> kKinds = {{{"F32", 4}, {"BF16", 2}, {"F16", 2}, {"F64", 8}, {"I64", 8}, {"I32", 4}, {"I16", 2}, {"I8", 1},
                                          {"U64", 8}, {"U32", 4}, {"U16", 2}, {"U8", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}}};

using Entries = std::map<std::string, SafetensorsEntry>;
/// Fills a buffer from an offset of the file.
using ReadAt = std::function<Result<void>(std::uint64_t, std::span<std::byte>)>;

Error corrupt(std::string_view where, std::string detail) { return {ErrorCode::corrupt, fmt::format("{}: {}", where, detail)}; }

/// The integers of a JSON array, or nothing when there is anything else in it.
std::optional<std::vector<std::uint64_t>> integers(const boost::json::value* value) {
  if (value == nullptr || !value->is_array()) return std::nullopt;
  std::vector<std::uint64_t> out;
  for (const boost::json::value& element : value->get_array()) {
    if (element.is_uint64()) {
      out.push_back(element.get_uint64());
    } else if (element.is_int64() && element.get_int64() >= 0) {
      out.push_back(static_cast<std::uint64_t>(element.get_int64()));
    } else {
      return std::nullopt;
    }
  }
  return out;
}

/// Elements times bytes, or nothing when that does not fit 64 bits.
std::optional<std::uint64_t> size_of(const std::vector<std::uint64_t>& shape, std::uint64_t element) {
  std::uint64_t size = element;
  for (const std::uint64_t extent : shape) {
    if (__builtin_mul_overflow(size, extent, &size)) return std::nullopt;
  }
  return size;
}

/// `data`: where the data begin in the file. Errors: detail without the file's name.
Result<SafetensorsEntry> parse_entry(const boost::json::value& value, std::uint64_t data, std::uint64_t data_size) {
  const auto refuse = [](std::string detail) { return Error{ErrorCode::corrupt, std::move(detail)}; };
  if (!value.is_object() || value.get_object().size() != 3) return refuse("want an object of dtype, shape, data_offsets, got " + brief(value));
  const boost::json::object& object = value.get_object();
  const boost::json::value* dtype = object.if_contains("dtype");
  const auto shape = integers(object.if_contains("shape"));
  const auto offsets = integers(object.if_contains("data_offsets"));
  if (dtype == nullptr || !dtype->is_string()) return refuse("want a dtype, got " + brief(value));
  if (!shape) return refuse("want a shape of whole numbers, got " + brief(value));
  if (!offsets || offsets->size() != 2) return refuse("want two data_offsets, got " + brief(value));
  const auto kind = std::ranges::find(kKinds, std::string_view(dtype->get_string()), &Kind::name);
  if (kind == kKinds.end()) return refuse(fmt::format("dtype {} is none of this format's", brief(*dtype)));
  const auto [begin, end] = std::pair((*offsets)[0], (*offsets)[1]);
  if (begin > end || end > data_size) {
    return refuse(fmt::format("want data_offsets within {} bytes of data, got [{}, {}]; the data begin at offset {}", data_size, begin, end, data));
  }
  const auto size = size_of(*shape, kind->bytes);
  if (!size || *size != end - begin) {
    return refuse(fmt::format("{} [{}] needs {} bytes, data_offsets give {} (at offset {})", kind->name, fmt::join(*shape, ", "),
                              size ? std::to_string(*size) : "more than 2^64", end - begin, data + begin));
  }
  return SafetensorsEntry{std::string(kind->name), *shape, data + begin, data + end};
}

/// Every byte of the data belongs to one tensor.
Result<void> check_cover(const Entries& entries, std::uint64_t data, std::uint64_t file_size, std::string_view where) {
  std::vector<std::pair<const SafetensorsEntry*, const std::string*>> order;
  for (const auto& [name, entry] : entries) order.emplace_back(&entry, &name);
  std::ranges::sort(order, {}, [](const auto& item) { return std::tuple(item.first->begin, item.first->end, *item.second); });
  std::uint64_t at = data;
  for (const auto& [entry, name] : order) {
    if (entry->begin < at) return corrupt(where, fmt::format("{} overlaps the tensor before it at offset {}", *name, entry->begin));
    if (entry->begin > at) return corrupt(where, fmt::format("a hole of {} bytes before {} at offset {}", entry->begin - at, *name, at));
    at = entry->end;
  }
  if (at != file_size) return corrupt(where, fmt::format("want the file's end at offset {}, got {} bytes", at, file_size));
  return {};
}

Result<Tensor> read_tensor(const std::string& name, const SafetensorsEntry& entry, const ReadAt& read_at, std::string_view where) {
  Tensor tensor;
  tensor.shape = entry.shape;
  tensor.dtype = entry.dtype == "BF16" ? Dtype::bfloat16 : Dtype::float32;
  const std::uint64_t size = entry.end - entry.begin;
  if (entry.dtype == "F32") {
    tensor.data.resize(size / 4);
    if (Result<void> read = read_at(entry.begin, std::as_writable_bytes(std::span(tensor.data))); !read) return read.error();
    return tensor;
  }
  if (entry.dtype != "BF16" && entry.dtype != "F16") {
    return Error{ErrorCode::unsupported, fmt::format("{}: {}: want F32, BF16 or F16, got {} (at offset {})", where, name, entry.dtype, entry.begin)};
  }
  tensor.data.resize(size / 2);
  std::vector<std::uint16_t> block(std::min<std::size_t>(kBlock, tensor.data.size()));
  for (std::size_t at = 0; at < tensor.data.size(); at += block.size()) {
    const std::span<std::uint16_t> part(block.data(), std::min(block.size(), tensor.data.size() - at));
    if (Result<void> read = read_at(entry.begin + 2 * at, std::as_writable_bytes(part)); !read) return read.error();
    std::ranges::transform(part, tensor.data.begin() + static_cast<std::ptrdiff_t>(at), tensor.dtype == Dtype::bfloat16 ? from_bfloat16 : from_float16);
  }
  return tensor;
}

Result<Weights> read_all(const ReadAt& read_at, std::uint64_t file_size, std::string_view where) {
  Bytes head(std::min<std::uint64_t>(file_size, 8));
  if (Result<void> read = read_at(0, head); !read) return read.error();
  std::uint64_t length = 0;
  if (head.size() == 8) std::memcpy(&length, head.data(), 8);
  // A length that lies is left to the parser, which sees the file's size.
  if (length <= kHeaderMax && length <= file_size - head.size()) {
    head.resize(8 + length);
    if (Result<void> read = read_at(8, std::span(head).subspan(8)); !read) return read.error();
  }
  Result<Entries> entries = parse_safetensors_header(head, file_size, where);
  if (!entries) return entries.error();
  Weights weights;
  for (const auto& [name, entry] : *entries) {
    Result<Tensor> tensor = read_tensor(name, entry, read_at, where);
    if (!tensor) return tensor.error();
    weights.emplace(name, std::move(*tensor));
  }
  return weights;
}

std::string header_of(const Weights& weights) {
  boost::json::object header;
  header["__metadata__"] = {{"format", "pt"}};
  std::uint64_t at = 0;
  for (const auto& [name, tensor] : weights) {
    const std::uint64_t end = at + tensor.data.size() * bytes_of(tensor.dtype);
    header[name] = {{"dtype", to_string(tensor.dtype)}, {"shape", boost::json::value_from(tensor.shape)}, {"data_offsets", {at, end}}};
    at = end;
  }
  std::string text = boost::json::serialize(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

/// Header and data, piece by piece.
Result<void> write_all(const Weights& weights, const std::function<Result<void>(BytesView)>& append) {
  const std::string header = header_of(weights);
  const std::uint64_t length = header.size();
  Result<void> done = append(std::as_bytes(std::span(&length, 1)));
  if (done) done = append(std::as_bytes(std::span(header)));
  for (const auto& [name, tensor] : weights) {
    each_stored_block(tensor, [&](BytesView block) {
      if (done) done = append(block);
    });
  }
  return done;
}

}  // namespace

Result<Entries> parse_safetensors_header(BytesView head, std::uint64_t file_size, std::string_view where) {
  if (file_size < 8 || head.size() < 8) return corrupt(where, fmt::format("want 8 bytes of header length at offset 0, got {}", std::min<std::uint64_t>(file_size, head.size())));
  std::uint64_t length = 0;
  std::memcpy(&length, head.data(), 8);
  if (length > kHeaderMax) return corrupt(where, fmt::format("want a header of at most {} bytes, got a length of {} at offset 0", kHeaderMax, length));
  if (length > file_size - 8 || length > head.size() - 8) {
    return corrupt(where, fmt::format("the header's length at offset 0 is {}, the file has {} bytes after it", length, file_size - 8));
  }
  const std::string_view text(reinterpret_cast<const char*>(head.data()) + 8, length);
  if (text.empty() || text.front() != '{') return corrupt(where, "want a JSON object at offset 8");
  Result<boost::json::value> header = parse_json(text, fmt::format("{}: header at offset 8", where), ErrorCode::corrupt);
  if (!header) return header.error();
  const std::uint64_t data = 8 + length;
  Entries entries;
  for (const auto& [key, value] : header->get_object()) {
    if (key == "__metadata__") {
      if (!value.is_object()) return corrupt(where, "header at offset 8: __metadata__: want an object, got " + brief(value));
      continue;
    }
    Result<SafetensorsEntry> entry = parse_entry(value, data, file_size - data);
    if (!entry) return corrupt(where, fmt::format("header at offset 8: {}: {}", std::string_view(key), entry.error().detail));
    entries.emplace(key, std::move(*entry));
  }
  if (Result<void> covered = check_cover(entries, data, file_size, where); !covered) return covered.error();
  return entries;
}

Result<Weights> parse_safetensors(BytesView file, std::string_view where) {
  const ReadAt read_at = [file](std::uint64_t offset, std::span<std::byte> out) -> Result<void> {
    if (!out.empty()) std::memcpy(out.data(), file.data() + offset, out.size());
    return {};
  };
  return read_all(read_at, file.size(), where);
}

Result<Weights> load_safetensors(const std::filesystem::path& path) {
  Result<InputFile> file = InputFile::open(path);
  if (!file) return file.error();
  return read_all([&](std::uint64_t offset, std::span<std::byte> out) { return file->read_at(offset, out); }, file->size(), path.string());
}

void each_stored_block(const Tensor& tensor, const std::function<void(BytesView)>& visit) {
  std::vector<float> words;
  std::vector<std::uint16_t> halves;
  for (std::size_t at = 0; at < tensor.data.size(); at += kBlock) {
    const std::span<const float> part = std::span(tensor.data).subspan(at, std::min(kBlock, tensor.data.size() - at));
    if (tensor.dtype == Dtype::bfloat16) {
      halves.resize(part.size());
      std::ranges::transform(part, halves.begin(), to_bfloat16);
      visit(std::as_bytes(std::span(halves)));
    } else {
      words.resize(part.size());
      std::ranges::transform(part, words.begin(), [](float value) { return std::isnan(value) ? std::numeric_limits<float>::quiet_NaN() : value; });
      visit(std::as_bytes(std::span(words)));
    }
  }
}

Bytes safetensors_bytes(const Weights& weights) {
  Bytes out;
  const Result<void> done = write_all(weights, [&](BytesView block) -> Result<void> {
    out.insert(out.end(), block.begin(), block.end());
    return {};
  });
  return done ? out : Bytes{};
}

Result<void> save_safetensors(const std::filesystem::path& path, const Weights& weights) {
  Result<OutputFile> file = OutputFile::create(path);
  if (!file) return file.error();
  if (Result<void> written = write_all(weights, [&](BytesView block) { return file->append(block); }); !written) return written;
  return file->commit();
}

}  // namespace troupe::models
