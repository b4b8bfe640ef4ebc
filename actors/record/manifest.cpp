#include "actors/record/manifest.hpp"

#include <fmt/format.h>

#include <map>

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
    return Error{ErrorCode::unsupported, fmt::format("{}: want format {}, got {}", (folder / "run.h5").string(), want,
                                                     format == nullptr ? "none" : format->brief())};
  }
  Manifest manifest;
  if (Result<void> read = from_value(*tree, manifest); !read)
    return Error{read.error().code, fmt::format("{}: {}", (folder / "run.h5").string(), read.error().detail)};
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

void count_events(Manifest& manifest, const JournalTables& tables) {
  std::map<std::string, ActorEntry> actors;
  for (ActorEntry& entry : manifest.actors) actors.emplace(entry.name, std::move(entry));
  std::map<std::string, MessageEntry> messages;
  for (MessageEntry& entry : manifest.messages) messages.emplace(entry.type, std::move(entry));
  for (std::size_t i = 1; i < tables.actors.id.size(); ++i) {
    if (tables.actors.name[i].empty()) continue;
    ActorEntry& entry = actors[tables.actors.name[i]];
    entry.name = tables.actors.name[i];
    entry.class_name = tables.actors.class_name[i];
    entry.id = tables.actors.id[i];
    entry.rank = tables.actors.rank[i];
  }
  const DeliveryTable& deliveries = tables.deliveries;
  for (std::size_t i = 0; i < deliveries.actor.size(); ++i) {
    if (const auto actor = actors.find(tables.actors.name[deliveries.actor[i]]); actor != actors.end()) ++actor->second.deliveries;
    MessageEntry& entry = messages[tables.names.text[deliveries.type[i]]];
    entry.type = tables.names.text[deliveries.type[i]];
    ++entry.count;
    entry.bytes += deliveries.bytes[i];
  }
  manifest.actors.clear();
  for (auto& [name, entry] : actors) manifest.actors.push_back(std::move(entry));
  manifest.messages.clear();
  for (auto& [type, entry] : messages) manifest.messages.push_back(std::move(entry));
  manifest.journal_bytes += tables.journal_bytes;
}

ExitEntry exit_of(const JournalTables& tables, std::uint32_t rank) {
  ExitEntry exit;
  exit.rank = rank;
  exit.said = tables.ended;
  exit.code = tables.end_code;
  exit.reason = tables.ended ? tables.end_reason : "killed: its journal says no end";
  exit.cut_bytes = tables.cut_bytes;
  return exit;
}

std::string journal_path(std::uint32_t attempt, std::uint32_t rank) { return fmt::format("journals/{:04}-{:04}.journal", attempt, rank); }
std::string sealed_path(std::uint32_t attempt, std::uint32_t rank) { return fmt::format("record/{:04}-{:04}.h5", attempt, rank); }
std::string checkpoint_path(std::uint64_t step) { return fmt::format("checkpoints/step-{:06}.h5", step); }

}  // namespace troupe::record
