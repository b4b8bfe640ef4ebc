#include "jobs/model_source.hpp"

#include <fmt/format.h>

#include "jobs/run_folder/paths.hpp"
#include "models/weights.hpp"

namespace troupe::jobs {
namespace {

namespace fs = std::filesystem;

Result<LoadedModel> open_folder(const fs::path& folder) {
  auto loaded = models::load_model_folder(folder);
  if (!loaded) return loaded.error();
  LoadedModel model{.config = std::move(loaded->config), .weights = std::move(loaded->weights), .tokenizer = {}};
  if (fs::exists(folder / "tokenizer.json")) {
    auto tokenizer = models::Tokenizer::load(folder);
    if (!tokenizer) return tokenizer.error();
    model.tokenizer = std::move(*tokenizer);
  }
  return model;
}

Error not_yet(const fs::path& path, std::string_view what) { return {ErrorCode::unsupported, fmt::format("{}: {} cannot be read by this build yet", path.string(), what)}; }

}  // namespace

Result<ModelKind> model_kind(const fs::path& path) {
  std::error_code code;
  if (!fs::exists(path, code)) return Error{ErrorCode::bad_input, fmt::format("{}: want a model folder or a run, got nothing there", path.string())};
  if (path.extension() == ".gguf") return ModelKind::gguf;
  if (fs::is_directory(path, code)) {
    if (fs::exists(path / "config.json", code)) return ModelKind::folder;
    if (is_run_folder(path)) return ModelKind::run;
  } else if (path.extension() == ".h5") {
    return ModelKind::checkpoint;
  }
  return Error{ErrorCode::bad_input, fmt::format("{}: want a Hugging Face folder (config.json) or a run (run.h5), got neither", path.string())};
}

Result<LoadedModel> open_model(const fs::path& path) {
  auto kind = model_kind(path);
  if (!kind) return kind.error();
  switch (*kind) {
    case ModelKind::folder: return open_folder(path);
    case ModelKind::run:
      if (fs::exists(run_paths::trained_model(path) / "config.json")) return open_folder(run_paths::trained_model(path));
      return not_yet(path, "a run's weights");
    case ModelKind::checkpoint: return not_yet(path, "a checkpoint's weights");
    case ModelKind::gguf: return Error{ErrorCode::unsupported, fmt::format("{}: GGUF files are not read by this build; want a Hugging Face folder or a run", path.string())};
  }
  return Error{ErrorCode::internal, "a kind of model that is none"};
}

Result<LoadedModel> open_model_at(const fs::path& run, std::uint64_t) { return not_yet(run, "a checkpoint's weights"); }

Result<models::Tokenizer> open_tokenizer(const fs::path& path) {
  if (path.filename() == "tokenizer.json") return models::Tokenizer::load(path);
  auto kind = model_kind(path);
  if (!kind) return kind.error();
  if (*kind == ModelKind::folder) return models::Tokenizer::load(path);
  if (*kind == ModelKind::run) {
    const fs::path trained = run_paths::trained_model(path);
    return models::Tokenizer::load(fs::exists(trained / "tokenizer.json") ? trained : run_paths::input_model(path));
  }
  return Error{ErrorCode::unsupported, fmt::format("{}: no tokenizer can be read from it by this build; want a Hugging Face folder, a run or a tokenizer.json", path.string())};
}

}  // namespace troupe::jobs
