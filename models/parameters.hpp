#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/base/error.hpp"
#include "models/config.hpp"
#include "models/tensor.hpp"

namespace troupe::models {

/// Half-open.
struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

/// Shard `index` of a model split for tensor parallelism.
struct Shard {
  std::uint32_t degree = 1;  ///< 1, 2, 4 or 8: whole subtrees of the eight segments
  std::uint32_t index = 0;
};

/// What shard holds of a dimension: its 8 / degree neighbouring segments, that is [floor(index n / degree), floor((index + 1) n / degree)).
Range shard_range(std::uint64_t extent, Shard shard);

/// How a parameter is split: rows are outputs of a linear (q, k, v, gate, up, their biases, lm_head), columns its inputs (o, down).
/// Whole: norms, embeddings, o's bias. The embedding is whole on every shard even when it is tied; the logits' part is then a range of its rows.
enum class Split : std::uint8_t { whole, rows, columns };

struct Parameter {
  std::string name;  ///< Hugging Face's
  std::vector<std::uint64_t> shape;
  Split split = Split::whole;
};

/// All parameters, ascending by name; a tied lm_head is not one.
std::vector<Parameter> parameters(const ModelConfig& config);
std::uint64_t parameter_count(const ModelConfig& config);

/// Errors: bad_input, naming the degrees that this model allows.
Result<void> check_degree(const ModelConfig& config, std::uint32_t degree);
std::vector<std::uint32_t> allowed_degrees(const ModelConfig& config);

/// The shard's part of a whole tensor (a copy).
Tensor shard_of(const Parameter& parameter, const Tensor& whole, Shard shard);
/// Writes a shard's part back into `whole`, which has the parameter's shape.
void place_shard(const Parameter& parameter, const Tensor& part, Shard shard, Tensor& whole);

/// Errors: bad_input naming the tensor: missing, unexpected, or of another shape than the configuration's.
Result<void> check_weights(const ModelConfig& config, const Weights& weights);

/// Weights for training from scratch: matrices and embeddings normal with initializer_range (Philox by parameter and element),
/// norms 1, biases 0. A function of config and seed alone.
Weights initial_weights(const ModelConfig& config, std::uint64_t seed);

}  // namespace troupe::models
