#pragma once

#include <filesystem>
#include <string>

#include "actors/base/error.hpp"

namespace troupe::jobs {

/// How a run ended, for people: accuracy before and after, a plot of the reward (or loss), where the run is, its digest, and the command
/// that replays it. Errors: bad_input when the run has no summary.json.
Result<std::string> describe_run(const std::filesystem::path& run);

}  // namespace troupe::jobs
