#include "jobs/run_folder/summary_file.hpp"

#include <fmt/format.h>

#include <boost/json.hpp>

#include "jobs/run_folder/paths.hpp"
#include "models/files.hpp"

namespace troupe::jobs {

namespace json = boost::json;

std::string summary_json(const Summary& summary) {
  return fmt::format(
      "{{\"job\": {}, \"state\": {}, \"steps\": {}, \"seed\": {}, \"ranks\": {}, \"wall_s\": {:.3f}, \"digest\": {}, \"messages\": {}, \"metrics\": {{{}}}}}\n",
      json_string(summary.job), json_string(summary.state), summary.steps, summary.seed, summary.ranks, summary.wall_s, json_string(summary.digest),
      summary.messages, json_fields(summary.metrics));
}

Result<void> write_summary(const std::filesystem::path& run, const Summary& summary) { return models::write_text(run_paths::summary(run), summary_json(summary)); }

Result<std::optional<Summary>> read_summary(const std::filesystem::path& run) {
  const auto file = run_paths::summary(run);
  std::error_code code;
  if (!std::filesystem::exists(file, code)) return std::optional<Summary>();
  auto text = models::read_text(file);
  if (!text) return text.error();
  try {
    const json::value value = json::parse(*text);
    const json::object& object = value.as_object();
    Summary summary;
    summary.job = object.at("job").as_string();
    summary.state = object.at("state").as_string();
    summary.steps = object.at("steps").to_number<std::uint64_t>();
    summary.seed = object.at("seed").to_number<std::uint64_t>();
    summary.ranks = object.at("ranks").to_number<std::uint32_t>();
    summary.wall_s = object.at("wall_s").to_number<double>();
    summary.digest = object.at("digest").as_string();
    summary.messages = object.at("messages").to_number<std::uint64_t>();
    for (const auto& [name, metric] : object.at("metrics").as_object()) {
      if (metric.is_number()) summary.metrics.emplace(name, metric.to_number<double>());
    }
    return std::optional(std::move(summary));
  } catch (const std::exception& problem) {  // of Boost.JSON
    return Error{ErrorCode::corrupt, fmt::format("{}: want a run's summary, got something else", file.string())};
  }
}

}  // namespace troupe::jobs
