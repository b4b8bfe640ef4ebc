#pragma once

#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "actors/base/fields.hpp"
#include "actors/base/archive.hpp"

namespace troupe::models {

/// How a tensor is stored in files. float16 is read (and becomes float32), never written.
enum class Dtype : std::uint8_t { float32 = 0, bfloat16 = 1 };

std::string_view to_string(Dtype dtype);  ///< as safetensors writes it: "F32", "BF16"
std::size_t bytes_of(Dtype dtype);

/// float32 to bfloat16, half to even; NaN stays one.
std::uint16_t to_bfloat16(float value);
float from_bfloat16(std::uint16_t bits);
float from_float16(std::uint16_t bits);

/// A whole or sharded parameter: row-major float32 in memory, `dtype` in files. Loading widens, saving rounds.
struct Tensor {
  std::vector<std::uint64_t> shape;
  std::vector<float> data;
  Dtype dtype = Dtype::float32;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    auto values = shaped(data, shape);
    archive& boost::serialization::make_nvp("data", values);
    archive& boost::serialization::make_nvp("dtype", dtype);
  }

  static Tensor zeros(std::vector<std::uint64_t> shape) {
    Tensor tensor;
    tensor.data.resize(std::accumulate(shape.begin(), shape.end(), std::uint64_t{1}, std::multiplies<>{}));
    tensor.shape = std::move(shape);
    return tensor;
  }
  std::uint64_t rows() const { return shape.empty() ? 1 : shape.front(); }
  std::uint64_t columns() const { return shape.size() < 2 ? 1 : shape[1]; }
};

/// Parameters by Hugging Face name, ascending in bytes: the order of digests, of gradient norms and of files.
using Weights = std::map<std::string, Tensor>;

}  // namespace troupe::models
