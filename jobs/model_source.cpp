#include "jobs/model_source.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "actors/record/run_record.hpp"
#include "actors/record/value_file.hpp"
#include "jobs/run_folder/inputs.hpp"
#include "jobs/run_folder/paths.hpp"
#include "models/training/trainer.hpp"
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

// Where a run's tokenizer, and its configuration unless the checkpoint has it, lie: with what it started from.
Result<fs::path> starting_model(const fs::path& run) {
  auto inputs = read_inputs(run);
  if (!inputs) return inputs.error();
  const auto model = inputs->find("model.path");
  if (model == inputs->end()) return Error{ErrorCode::bad_input, fmt::format("{}: want a run that started from a model folder, got one from scratch", run.string())};
  return run / model->second.path;
}

Result<fs::path> tokenizer_folder(const fs::path& run) {
  if (fs::exists(run_paths::trained_model(run) / "tokenizer.json")) return run_paths::trained_model(run);
  return starting_model(run);
}

template <class T>
Result<void> read_member(const Value& checkpoint, std::string_view name, const fs::path& path, T& out) {
  const Value* value = checkpoint.find(name);
  if (value == nullptr) return Error{ErrorCode::corrupt, fmt::format("{}: want a checkpoint with {}, got one without", path.string(), name)};
  auto done = from_value(*value, out);
  if (!done) return Error{ErrorCode::corrupt, fmt::format("{}: {}", path.string(), done.error().detail)};
  return {};
}

// Every job's checkpoint is a record with "trainer"; one that began from scratch has "model", too.
Result<LoadedModel> from_checkpoint(const Value& checkpoint, const fs::path& path, const fs::path& run) {
  LoadedModel model;
  models::TrainerState state;
  if (auto done = read_member(checkpoint, "trainer", path, state); !done) return done.error();
  model.weights = std::move(state.weights);
  if (checkpoint.find("model") != nullptr) {
    if (auto done = read_member(checkpoint, "model", path, model.config); !done) return done.error();
  } else {
    auto folder = starting_model(run);
    if (!folder) return folder.error();
    auto config = models::load_config(*folder);
    if (!config) return config.error();
    model.config = std::move(*config);
  }
  model.config.dtype = models::Dtype::float32;
  if (const auto folder = tokenizer_folder(run)) {
    auto tokenizer = models::Tokenizer::load(*folder);
    if (!tokenizer) return tokenizer.error();
    model.tokenizer = std::move(*tokenizer);
  }
  return model;
}

Result<LoadedModel> open_checkpoint(const fs::path& file) {
  auto checkpoint = record::read_value_file(file);
  if (!checkpoint) return checkpoint.error();
  return from_checkpoint(*checkpoint, file, fs::absolute(file).parent_path().parent_path());
}

Result<LoadedModel> open_run(const fs::path& run, std::optional<std::uint64_t> step) {
  auto record = record::RunRecord::open(run);
  if (!record) return record.error();
  std::vector<std::uint64_t> steps;
  for (const auto& entry : record->checkpoints()) steps.push_back(entry.step);
  if (steps.empty()) return Error{ErrorCode::bad_input, fmt::format("{}: want a run with a checkpoint, got one without", run.string())};
  if (step && std::find(steps.begin(), steps.end(), *step) == steps.end()) {
    return Error{ErrorCode::bad_input, fmt::format("{}: want one of the checkpoints' steps {}, got {}", run.string(), fmt::join(steps, ", "), *step)};
  }
  const std::uint64_t wanted = step.value_or(steps.back());
  auto checkpoint = record->load_checkpoint(wanted);
  if (!checkpoint) return checkpoint.error();
  return from_checkpoint(*checkpoint, run / record::checkpoint_path(wanted), run);
}

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
    case ModelKind::run: return open_run(path, {});
    case ModelKind::checkpoint: return open_checkpoint(path);
    case ModelKind::gguf: return Error{ErrorCode::unsupported, fmt::format("{}: GGUF files are not read by this build; want a Hugging Face folder or a run", path.string())};
  }
  return Error{ErrorCode::internal, "a kind of model that is none"};
}

Result<LoadedModel> open_model_at(const fs::path& run, std::uint64_t step) {
  auto kind = model_kind(run);
  if (!kind) return kind.error();
  if (*kind != ModelKind::run) return Error{ErrorCode::bad_input, fmt::format("{}: want a run, which has steps, got none", run.string())};
  return open_run(run, step);
}

Result<models::Tokenizer> open_tokenizer(const fs::path& path) {
  if (path.filename() == "tokenizer.json") return models::Tokenizer::load(path);
  auto kind = model_kind(path);
  if (!kind) return kind.error();
  if (*kind == ModelKind::folder) return models::Tokenizer::load(path);
  if (*kind == ModelKind::run) {
    auto folder = tokenizer_folder(path);
    if (!folder) return folder.error();
    return models::Tokenizer::load(*folder);
  }
  return Error{ErrorCode::unsupported, fmt::format("{}: no tokenizer can be read from it by this build; want a Hugging Face folder, a run or a tokenizer.json", path.string())};
}

}  // namespace troupe::jobs
