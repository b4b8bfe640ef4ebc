#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "actors/base/digest.hpp"
#include "actors/base/error.hpp"
#include "jobs/config/grpo_config.hpp"
#include "jobs/config/job_file.hpp"
#include "jobs/config/sft_config.hpp"

namespace troupe::jobs {

/// A job's whole configuration, checked.
using JobConfig = std::variant<SftConfig, GrpoConfig>;

/// A job file with `key=value` overrides. Errors: bad_input, one line with the key, what it got, what is allowed.
Result<JobConfig> read_job(const std::filesystem::path& file, std::span<const std::string> overrides = {});
/// The same from values. Errors as read_job.
Result<JobConfig> make_job(const Settings& settings);

const CommonConfig& common(const JobConfig& config);

/// A key with its value.
struct KeyValue {
  Key key;
  Setting value;
};
/// All keys of the configuration's job, ascending by name.
std::vector<KeyValue> key_values(const JobConfig& config);
/// The keys of "grpo" or "sft" with their defaults.
std::vector<KeyValue> schema(std::string_view job);

/// `key = value` lines, ascending: what can change a result. Equal texts, equal results (given the same inputs).
std::string canonical_text(const JobConfig& config);
Digest128 config_digest(const JobConfig& config);
/// All keys, as a job file that read_job reads back. Paths stand in it as they are.
std::string job_file_text(const JobConfig& config);

/// The first key, in ascending order, that can change a result and differs; "job" first.
struct ConfigDifference {
  std::string key;
  std::string left, right;  ///< as in a job file
};
std::optional<ConfigDifference> first_difference(const JobConfig& left, const JobConfig& right);

}  // namespace troupe::jobs
