#include "jobs/config/job_file.hpp"

#include <fmt/format.h>

#include <toml++/toml.h>

#include "models/files.hpp"

namespace troupe::jobs {
namespace {

constexpr std::uintmax_t kFileBytesMax = 1 << 20;

Error refused(std::string detail) { return {ErrorCode::bad_input, std::move(detail)}; }

std::string printable(std::string_view text) {
  std::string out(text.substr(0, 120));
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F) c = '?';
  }
  return out;
}

Result<void> flatten(const toml::table& table, const std::string& prefix, const std::string& file, const std::filesystem::path& base, Settings& settings) {
  for (const auto& [key, node] : table) {
    const std::string name = prefix + std::string(key.str());
    if (const auto* inner = node.as_table()) {
      if (auto done = flatten(*inner, name + ".", file, base, settings); !done) return done;
      continue;
    }
    Given given{.value = false, .where = fmt::format("{}:{}", file, node.source().begin.line), .base = base};
    if (const auto* text = node.as_string()) given.value = text->get();
    else if (const auto* whole_value = node.as_integer()) given.value = whole_value->get();
    else if (const auto* real = node.as_floating_point()) given.value = real->get();
    else if (const auto* flag = node.as_boolean()) given.value = flag->get();
    else return refused(fmt::format("{}: want text, a number, true or false, got {} ({})", printable(name), node.is_array() ? "an array" : "a date or time", given.where));
    settings.insert_or_assign(name, std::move(given));
  }
  return {};
}

}  // namespace

Result<Settings> parse_job_text(std::string_view text, const std::string& file, const std::filesystem::path& base) {
  Settings settings;
  try {
    const toml::table table = toml::parse(text);
    if (auto done = flatten(table, "", file, base, settings); !done) return done.error();
  } catch (const toml::parse_error& error) {
    return refused(fmt::format("{}:{}: want TOML, got: {}", file, error.source().begin.line, printable(error.description())));
  }
  if (settings.empty()) return refused(fmt::format("{}: want a job file, got one without any key; it needs at least job = \"grpo\" or \"sft\"", file));
  return settings;
}

Result<Settings> read_job_file(const std::filesystem::path& file) {
  std::error_code code;
  const auto status = std::filesystem::status(file, code);
  if (!std::filesystem::exists(status)) return refused(fmt::format("{}: want a job file, got none there", file.string()));
  if (!std::filesystem::is_regular_file(status)) return refused(fmt::format("{}: want a job file, got a {}", file.string(), std::filesystem::is_directory(status) ? "folder" : "special file"));
  if (std::filesystem::file_size(file, code) > kFileBytesMax) return refused(fmt::format("{}: want a job file of at most 1 MiB, got a larger one", file.string()));
  auto text = models::read_text(file);
  if (!text) return refused(text.error().detail);
  return parse_job_text(*text, file.filename().string(), std::filesystem::absolute(file).parent_path());
}

Result<void> add_overrides(std::span<const std::string> overrides, Settings& settings) {
  for (const std::string& text : overrides) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) return refused(fmt::format("\"{}\": want key=value", printable(text)));
    std::string value = text.substr(equals + 1);
    settings.insert_or_assign(text.substr(0, equals), Given{.value = std::move(value), .where = "command line", .base = std::filesystem::current_path(), .is_untyped = true});
  }
  return {};
}

}  // namespace troupe::jobs
