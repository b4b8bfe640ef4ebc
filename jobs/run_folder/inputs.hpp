#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "actors/base/error.hpp"
#include "jobs/config/config.hpp"

namespace troupe::jobs {

/// What a run was started from, by the key that names it.
struct Input {
  std::string path;    ///< relative to the RUN when it is kept there, else absolute
  std::string digest;  ///< of what a job reads of it: names and contents
};
using Inputs = std::map<std::string, Input>;

/// Inputs of so many bytes at most are kept in the run.
inline constexpr std::uint64_t kKeptBytesMax = 64ULL << 20;

/// Of a file: of its bytes. Of a model folder: of the names and bytes of its files that a model has. Errors: io.
Result<std::string> input_digest(const std::filesystem::path& path);

/// Copies what is small enough into RUN/inputs. Errors: io.
Result<Inputs> keep_inputs(const std::filesystem::path& run, const JobConfig& config);
/// RUN/inputs.json. Errors: io, corrupt.
Result<void> write_inputs(const std::filesystem::path& run, const Inputs& inputs);
Result<Inputs> read_inputs(const std::filesystem::path& run);

/// The configuration with its inputs as `inputs` has them: relative paths as they are, or below `base`.
JobConfig with_inputs(JobConfig config, const Inputs& inputs, const std::filesystem::path& base = {});

/// Errors: bad_input naming the key whose input holds other bytes than those that the run was started from.
Result<void> check_inputs(const JobConfig& config, const Inputs& inputs);

}  // namespace troupe::jobs
