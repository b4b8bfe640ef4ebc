#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "actors/base/bytes.hpp"
#include "actors/base/error.hpp"
#include "models/tensor.hpp"

namespace troupe::models {

/// Where a tensor lies in a file. Format: safetensors.md.
struct SafetensorsEntry {
  std::string dtype;  ///< as the header writes it
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0;  ///< from the start of the file
  std::uint64_t end = 0;
};

/// Parses a header. `head`: the first bytes of the file, at least 8 + the header's length unless the file is shorter; `file_size`: all of it.
/// Accepts exactly: u64 little-endian length, JSON of that length, data that tensors cover without hole or overlap to the file's end.
/// Errors: corrupt, one line with the offset.
Result<std::map<std::string, SafetensorsEntry>> parse_safetensors_header(BytesView head, std::uint64_t file_size, std::string_view where);

/// All tensors of a file, widened to float32. F32, BF16 and F16; others are unsupported, naming the tensor.
Result<Weights> parse_safetensors(BytesView file, std::string_view where);
Result<Weights> load_safetensors(const std::filesystem::path& file);

/// The bytes of a file that holds `weights`: tensors in ascending name, header padded with spaces to a multiple of 8.
Bytes safetensors_bytes(const Weights& weights);
/// Written aside, flushed and renamed.
Result<void> save_safetensors(const std::filesystem::path& file, const Weights& weights);

/// A tensor's data as a file holds it (little-endian, in its dtype, rounded half to even, NaN canonical), block by block.
void each_stored_block(const Tensor& tensor, const std::function<void(BytesView)>& visit);

}  // namespace troupe::models
