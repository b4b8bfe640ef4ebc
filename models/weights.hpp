#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "actors/base/digest.hpp"
#include "actors/base/error.hpp"
#include "models/config.hpp"
#include "models/parameters.hpp"
#include "models/tensor.hpp"
#include "models/tokenizer.hpp"

namespace troupe::models {

/// A model folder in Hugging Face's layout: config.json, model.safetensors or shards with an index, a tokenizer where there is one.
struct ModelFolder {
  ModelConfig config;
  Weights weights;
};

/// Reads and checks a folder: every tensor of the configuration is there in its shape (a tied model may carry lm_head.weight; it must
/// equal the embedding and is dropped). Errors: io, bad_input (what is missing), corrupt (a file that lies, with the offset), unsupported.
Result<ModelFolder> load_model_folder(const std::filesystem::path& folder);

/// Writes config.json, generation_config.json, model.safetensors (in the tensors' dtypes) and the tokenizer's files. A folder that is not
/// there is written aside as a whole and renamed; in one that is, each file is. Errors: bad_input, io; then nothing new is there.
Result<void> save_model_folder(const std::filesystem::path& folder, const ModelConfig& config, const Weights& weights, const Tokenizer* tokenizer = nullptr);

/// Marks all tensors (and what export will write) as float32: what a trainer does before its first step.
void store_as(Weights& weights, Dtype dtype);

/// The weights' digest: XXH3-128 over the parameters in ascending name, each adding name, 0, dtype, 0, dimensions as
/// little-endian u64 and the canonical digest of its data as `save_model_folder` writes it.
struct TensorDigest {
  std::string name;
  Dtype dtype = Dtype::float32;
  std::vector<std::uint64_t> shape;
  Digest128 digest;  ///< of the data alone
};
std::vector<TensorDigest> tensor_digests(const Weights& weights, unsigned threads = 1);
Digest128 combine(const std::vector<TensorDigest>& digests);  ///< precondition: ascending by name
Digest128 weights_digest(const Weights& weights, unsigned threads = 1);

}  // namespace troupe::models
