#include "actors/record/inspect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "actors/record/history.hpp"

namespace troupe::record {
namespace {

std::string state_of(const Manifest& manifest) {
  if (manifest.attempts.empty()) return "not begun";
  if (manifest.finished) return "finished";
  const std::vector<ExitEntry>& exits = manifest.attempts.back().exits;
  const bool all_said = !exits.empty() && std::all_of(exits.begin(), exits.end(), [](const ExitEntry& exit) { return exit.said; });
  return all_said ? "stopped" : "killed or running";
}

/// What sealing will say of an attempt, from its journals as they are now.
Result<void> add_unsealed(const std::filesystem::path& folder, Manifest& manifest, AttemptEntry& attempt) {
  Result<std::vector<JournalTables>> ranks = read_tables(folder, manifest, attempt.number);
  if (!ranks) return std::move(ranks).error();
  for (const JournalTables& tables : *ranks) {
    count_events(manifest, tables);
    attempt.exits.push_back(exit_of(tables, tables.header.rank));
    if (!tables.steps.step.empty()) attempt.last_step = std::max(attempt.last_step, tables.steps.step.back());
  }
  return {};
}

std::size_t sealed_attempts(const Manifest& manifest) {
  return static_cast<std::size_t>(
      std::count_if(manifest.attempts.begin(), manifest.attempts.end(), [](const AttemptEntry& attempt) { return attempt.sealed; }));
}

/// The manifest as if every attempt were sealed. When the run seals one meanwhile, its journals may be gone before we read them: then
/// again.
Result<Manifest> read_with_journals(const std::filesystem::path& folder) {
  for (;;) {
    Result<Manifest> manifest = read_manifest(folder);
    if (!manifest) return manifest;
    const std::size_t sealed = sealed_attempts(*manifest);
    std::vector<AttemptEntry> attempts = manifest->attempts;
    Result<void> added;
    for (AttemptEntry& attempt : attempts) {
      if (!attempt.sealed && added) added = add_unsealed(folder, *manifest, attempt);
    }
    const Result<Manifest> now = read_manifest(folder);
    if (!now) return now;
    if (sealed_attempts(*now) != sealed) continue;
    if (!added) return std::move(added).error();
    manifest->attempts = std::move(attempts);
    return manifest;
  }
}

std::string readable(std::uint64_t bytes) {
  constexpr std::string_view units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

std::string exit_text(const ExitEntry& exit) {
  std::string out = fmt::format("rank {}: ", exit.rank);
  const auto code = static_cast<ErrorCode>(exit.code);
  if (exit.said && code != ErrorCode::ok) out += fmt::format("{}: ", to_string(code));
  out += exit.reason.empty() ? "done" : exit.reason;
  if (exit.cut_bytes > 0) out += fmt::format(" ({} bytes of an unfinished entry)", exit.cut_bytes);
  return out;
}

void append_text(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (code < 0x20)
      out += fmt::format("\\u{:04x}", code);
    else
      out += c;
  }
  out += '"';
}

template <class T>
std::string number(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  if constexpr (std::is_floating_point_v<T>) {
    if (!(value - value == 0)) return "null";
  }
  return fmt::format("{}", value);
}

std::string element(ScalarType type, const std::byte* at) {
  switch (type) {
    case ScalarType::boolean:
      return *at == std::byte{0} ? "false" : "true";
    case ScalarType::int8:
      return fmt::format("{}", static_cast<int>(static_cast<std::int8_t>(*at)));
    case ScalarType::uint8:
      return fmt::format("{}", std::to_integer<unsigned>(*at));
    case ScalarType::int16:
      return number<std::int16_t>(at);
    case ScalarType::uint16:
      return number<std::uint16_t>(at);
    case ScalarType::int32:
      return number<std::int32_t>(at);
    case ScalarType::uint32:
      return number<std::uint32_t>(at);
    case ScalarType::int64:
      return number<std::int64_t>(at);
    case ScalarType::uint64:
      return number<std::uint64_t>(at);
    case ScalarType::float32:
      return number<float>(at);
    case ScalarType::float64:
      return number<double>(at);
  }
  return "null";
}

/// Elements from `at` on in the shape's dimensions from `dimension` on; moves `at` past them.
void append_array(std::string& out, const Value& value, const std::vector<std::uint64_t>& shape, std::size_t dimension,
                  const std::byte*& at) {
  if (dimension == shape.size()) {
    out += element(value.type, at);
    at += size_of(value.type);
    return;
  }
  out += '[';
  for (std::uint64_t i = 0; i < shape[dimension]; ++i) {
    if (i > 0) out += ", ";
    append_array(out, value, shape, dimension + 1, at);
  }
  out += ']';
}

void append(std::string& out, const Value& value) {
  switch (value.kind) {
    case Value::Kind::absent:
      out += "null";
      return;
    case Value::Kind::scalar:
      out += element(value.type, value.data.data());
      return;
    case Value::Kind::text:
      append_text(out, value.text);
      return;
    case Value::Kind::array: {
      const std::byte* at = value.data.data();
      return append_array(out, value,
                          value.shape.empty() ? std::vector<std::uint64_t>{value.data.size() / size_of(value.type)} : value.shape, 0, at);
    }
    case Value::Kind::list:
    case Value::Kind::record:
      break;
  }
  const bool record = value.kind == Value::Kind::record;
  out += record ? '{' : '[';
  for (std::size_t i = 0; i < value.children.size(); ++i) {
    if (i > 0) out += ", ";
    if (record) {
      append_text(out, value.names[i]);
      out += ": ";
    }
    append(out, value.children[i]);
  }
  out += record ? '}' : ']';
}

}  // namespace

Result<RunSummary> inspect(const std::filesystem::path& folder) {
  Result<Manifest> read = read_with_journals(folder);
  if (!read) return std::move(read).error();
  Manifest& manifest = *read;
  RunSummary summary;
  summary.run_id = manifest.run_id;
  summary.state = state_of(manifest);
  if (!manifest.attempts.empty()) {
    summary.ranks = manifest.attempts.back().ranks;
    summary.last_step = manifest.attempts.back().last_step;
  }
  summary.level = manifest.level;
  summary.build_id = manifest.build_id;
  summary.contract = manifest.contract;
  summary.facts = std::move(manifest.facts);
  summary.attempts = std::move(manifest.attempts);
  summary.checkpoints = std::move(manifest.checkpoints);
  summary.actors = std::move(manifest.actors);
  summary.messages = std::move(manifest.messages);
  for (const MessageEntry& message : summary.messages) {
    summary.message_count += message.count;
    summary.message_bytes += message.bytes;
  }
  summary.recorded_bytes = manifest.journal_bytes;
  if (summary.message_count > 0)
    summary.recorded_bytes_per_message = static_cast<double>(summary.recorded_bytes) / static_cast<double>(summary.message_count);
  return summary;
}

std::string to_text(const RunSummary& summary) {
  std::string out = fmt::format("run {}: {}, step {}, {} ranks, recorded at level {}\n", summary.run_id, summary.state, summary.last_step,
                                summary.ranks, summary.level);
  out += fmt::format("numerics {}, build {}\n", summary.contract, summary.build_id);
  for (const Fact& fact : summary.facts) out += fmt::format("{}: {}\n", fact.name, fact.value);
  out += fmt::format("messages: {} of {} in all; {} recorded, {:.1f} bytes a message\n", summary.message_count,
                     readable(summary.message_bytes), readable(summary.recorded_bytes), summary.recorded_bytes_per_message);
  for (const AttemptEntry& attempt : summary.attempts) {
    out +=
        fmt::format("\nattempt {} from step {} to {} on {} ranks\n", attempt.number, attempt.start_step, attempt.last_step, attempt.ranks);
    for (const ExitEntry& exit : attempt.exits) out += fmt::format("  {}\n", exit_text(exit));
  }
  out += "\ncheckpoints\n";
  for (const CheckpointEntry& checkpoint : summary.checkpoints)
    out += fmt::format("  step {:>6}  weights {}  {}\n", checkpoint.step, checkpoint.weights_digest, checkpoint.file);
  std::size_t width = 8;
  for (const ActorEntry& actor : summary.actors) width = std::max(width, actor.name.size());
  out += fmt::format("\n{:<{}}  rank   messages  class\n", "actor", width);
  for (const ActorEntry& actor : summary.actors)
    out += fmt::format("{:<{}}  {:>4} {:>10}  {}\n", actor.name, width, actor.rank, actor.deliveries, actor.class_name);
  width = 12;
  for (const MessageEntry& message : summary.messages) width = std::max(width, message.type.size());
  out += fmt::format("\n{:<{}}  {:>10}  {:>12}\n", "message", width, "count", "bytes");
  for (const MessageEntry& message : summary.messages)
    out += fmt::format("{:<{}}  {:>10}  {:>12}\n", message.type, width, message.count, readable(message.bytes));
  return out;
}

std::string to_json(const Value& value) {
  std::string out;
  append(out, value);
  return out;
}

}  // namespace troupe::record
