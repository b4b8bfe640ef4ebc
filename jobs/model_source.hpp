#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "actors/base/error.hpp"
#include "models/config.hpp"
#include "models/tensor.hpp"
#include "models/tokenizer.hpp"

namespace troupe::jobs {

struct LoadedModel {
  models::ModelConfig config;
  models::Weights weights;
  std::optional<models::Tokenizer> tokenizer;  ///< absent when the folder has none
};

/// What a path given as MODEL is.
enum class ModelKind { folder, run, checkpoint, gguf };
/// Errors: bad_input when nothing is there or it is none of them.
Result<ModelKind> model_kind(const std::filesystem::path& path);

/// A Hugging Face folder, or a RUN's last weights, or a checkpoint's. Errors: bad_input, corrupt, io; unsupported for GGUF files.
Result<LoadedModel> open_model(const std::filesystem::path& path);

/// The weights of a RUN's checkpoint of that step. Errors: bad_input naming the steps there are.
Result<LoadedModel> open_model_at(const std::filesystem::path& run, std::uint64_t step);

/// The tokenizer of a MODEL, or a tokenizer.json. Errors as open_model; bad_input when the model has none.
Result<models::Tokenizer> open_tokenizer(const std::filesystem::path& path);

}  // namespace troupe::jobs
