#include "actors/record/manifest.hpp"

#include <fmt/format.h>

#include "actors/record/value_file.hpp"

namespace troupe::record {

const CheckpointEntry* Manifest::checkpoint(std::uint64_t step) const {
  for (const CheckpointEntry& entry : checkpoints) {
    if (entry.step == step) return &entry;
  }
  return nullptr;
}

const FileEntry* Manifest::file(std::string_view path) const {
  for (const FileEntry& entry : files) {
    if (entry.path == path) return &entry;
  }
  return nullptr;
}

Result<Manifest> read_manifest(const std::filesystem::path& folder) {
  Result<Value> tree = read_value_file(folder / "run.h5");
  if (!tree) return std::move(tree).error();
  // The format first: another one may lack fields that this one wants.
  const Value* format = tree->find("format");
  const std::string want = fmt::format("{}", kManifestFormat);
  if (format == nullptr || format->kind != Value::Kind::scalar || format->brief() != want) {
    return Error{ErrorCode::unsupported, fmt::format("{}: want format {}, got {}", (folder / "run.h5").string(), want, format == nullptr ? "none" : format->brief())};
  }
  Manifest manifest;
  if (Result<void> read = from_value(*tree, manifest); !read) return Error{read.error().code, fmt::format("{}: {}", (folder / "run.h5").string(), read.error().detail)};
  return manifest;
}

Result<void> write_manifest(const std::filesystem::path& folder, const Manifest& manifest) {
  ValueFileOptions options;
  for (const AttemptEntry& attempt : manifest.attempts) {
    for (const ExitEntry& exit : attempt.exits) {
      const std::string sealed = sealed_path(attempt.number, exit.rank);
      if (manifest.file(sealed) == nullptr) continue;
      options.links.push_back({.path = fmt::format("events/{:04}-{:04}", attempt.number, exit.rank), .file = sealed, .object = "/"});
    }
  }
  return save_value_file(folder / "run.h5", manifest, options);
}

std::string journal_path(std::uint32_t attempt, std::uint32_t rank) { return fmt::format("journals/{:04}-{:04}.journal", attempt, rank); }
std::string sealed_path(std::uint32_t attempt, std::uint32_t rank) { return fmt::format("record/{:04}-{:04}.h5", attempt, rank); }
std::string checkpoint_path(std::uint64_t step) { return fmt::format("checkpoints/step-{:06}.h5", step); }

}  // namespace troupe::record
