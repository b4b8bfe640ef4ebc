#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "actors/base/error.hpp"
#include "jobs/config/key.hpp"

namespace troupe::jobs {

/// The values of a job file (TOML), tables flattened to dotted keys. Errors: bad_input naming the file, and the line where there is one:
/// missing, unreadable, empty, no TOML, a value that no key can have (an array, a date).
Result<Settings> read_job_file(const std::filesystem::path& file);
Result<Settings> parse_job_text(std::string_view text, const std::string& file, const std::filesystem::path& base);

/// Adds `key=value` of the command line; the last one of a key wins. Relative paths in them are relative to the working folder.
/// Errors: bad_input for one without a key or "=".
Result<void> add_overrides(std::span<const std::string> overrides, Settings& settings);

}  // namespace troupe::jobs
