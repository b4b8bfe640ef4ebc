#include "jobs/launch/launch_folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

namespace troupe::jobs {
namespace {

namespace fs = std::filesystem;

template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The numbers in files PREFIX-RANK.
template <class T>
std::map<std::uint32_t, T> numbers(const fs::path& folder, std::string_view prefix) {
  std::map<std::uint32_t, T> found;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const auto rank = parse_number<std::uint32_t>(std::string_view(name).substr(prefix.size()));
    std::string text;
    std::ifstream(entry.path()) >> text;
    const auto value = parse_number<T>(text);
    if (rank && value) found.emplace(*rank, *value);
  }
  return found;
}

// What a rank cannot write here it cannot say anywhere: the launcher then takes it for lost.
void write_number(const fs::path& file, long long value) {
  const fs::path aside = file.string() + ".partial";
  std::ofstream(aside) << value;
  std::error_code code;
  fs::rename(aside, file, code);
}

}  // namespace

Result<LaunchFolder> LaunchFolder::create() {
  std::error_code code;
  std::string pattern = (fs::temp_directory_path(code) / "troupe-XXXXXX").string();
  if (code || mkdtemp(pattern.data()) == nullptr) return Error{ErrorCode::io, fmt::format("{}: could not be made: {}", pattern, std::strerror(errno))};
  LaunchFolder folder(pattern, true);
  if (mkfifo(folder.fifo().c_str(), 0600) != 0) return Error{ErrorCode::io, fmt::format("{}: could not be made: {}", folder.fifo().string(), std::strerror(errno))};
  return folder;
}

std::optional<LaunchFolder> LaunchFolder::of_this_process() {
  const char* named = std::getenv(kVariable);
  std::error_code code;
  if (named == nullptr || !fs::is_directory(named, code)) return std::nullopt;
  return LaunchFolder(named, false);
}

LaunchFolder::LaunchFolder(LaunchFolder&& other) noexcept : path_(std::move(other.path_)), is_owner_(std::exchange(other.is_owner_, false)) {}

LaunchFolder::~LaunchFolder() {
  std::error_code code;
  if (is_owner_) fs::remove_all(path_, code);
}

std::map<std::uint32_t, pid_t> LaunchFolder::processes() const { return numbers<pid_t>(path_, "rank-"); }
std::map<std::uint32_t, int> LaunchFolder::exit_codes() const { return numbers<int>(path_, "exit-"); }
void LaunchFolder::write_process(std::uint32_t rank, pid_t process) const { write_number(path_ / fmt::format("rank-{}", rank), process); }
void LaunchFolder::write_exit_code(std::uint32_t rank, int code) const { write_number(path_ / fmt::format("exit-{}", rank), code); }

std::uint32_t rank_from_environment() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
    const char* text = std::getenv(name);
    if (text == nullptr) continue;
    if (const auto rank = parse_number<std::uint32_t>(text)) return *rank;
  }
  return 0;
}

}  // namespace troupe::jobs
