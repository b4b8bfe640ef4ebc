#include "jobs/report/metrics_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "models/files.hpp"

#include "jobs/report/write_all.hpp"

namespace troupe::jobs {
namespace {

namespace json = boost::json;

Error failed(const std::filesystem::path& path) { return {ErrorCode::io, fmt::format("{}: could not be written: {}", path.string(), std::strerror(errno))}; }

std::optional<json::object> parse_line(std::string_view line) {
  boost::system::error_code code;
  json::value value = json::parse({line.data(), line.size()}, code);
  if (code || !value.is_object()) return std::nullopt;
  return value.as_object();
}

std::optional<double> number_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains({name.data(), name.size()});
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

// Calls visit(line with its end) for whole lines, until it says no.
template <class Visit>
void each_line(std::string_view text, Visit&& visit) {
  for (std::size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string_view::npos; begin = end + 1) {
    if (!visit(text.substr(begin, end - begin))) return;
  }
}

Result<std::size_t> bytes_up_to(const std::filesystem::path& file, std::string_view text, std::uint64_t last_step) {
  std::size_t kept = 0, number = 0;
  std::optional<Error> error;
  each_line(text, [&](std::string_view line) {
    ++number;
    const auto object = parse_line(line);
    const auto step = object ? number_in(*object, "step") : std::nullopt;
    if (!step) error = Error{ErrorCode::corrupt, fmt::format("{}:{}: want an object with \"step\", got something else", file.string(), number)};
    if (!step || *step > static_cast<double>(last_step)) return false;
    kept += line.size() + 1;
    return true;
  });
  // What is damaged beyond the wanted steps does not matter, and cannot be told from them.
  if (error) return *error;
  return kept;
}

}  // namespace

Result<MetricsFile> MetricsFile::open(const std::filesystem::path& file, std::uint64_t last_step) {
  std::size_t kept = 0;
  std::error_code code;
  if (last_step > 0 && std::filesystem::exists(file, code)) {
    auto text = models::read_text(file);
    if (!text) return text.error();
    auto bytes = bytes_up_to(file, *text, last_step);
    if (!bytes) return bytes.error();
    kept = *bytes;
  }
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return failed(file);
  MetricsFile opened(file, fd);
  if (ftruncate(fd, static_cast<off_t>(kept)) != 0) return failed(file);
  return opened;
}

MetricsFile::MetricsFile(MetricsFile&& other) noexcept : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

MetricsFile::~MetricsFile() {
  if (fd_ >= 0) close(fd_);
}

Result<void> MetricsFile::append(std::uint64_t step, const Metrics& metrics) {
  const std::string line = fmt::format("{{\"step\": {}{}{}}}\n", step, metrics.empty() ? "" : ", ", json_fields(metrics));
  if (!write_all(fd_, line)) return failed(path_);
  return {};
}

std::vector<double> read_metric(const std::filesystem::path& file, std::string_view name) {
  std::vector<double> values;
  auto text = models::read_text(file);
  if (!text) return values;
  each_line(*text, [&](std::string_view line) {
    const auto object = parse_line(line);
    if (!object) return false;
    if (const auto value = number_in(*object, name)) values.push_back(*value);
    return true;
  });
  return values;
}

}  // namespace troupe::jobs
