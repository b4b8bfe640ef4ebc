#include <fmt/format.h>

#include "jobs/job.hpp"
#include "jobs/model_source.hpp"
#include "jobs/tasks/task.hpp"
#include "models/config.hpp"
#include "models/parameters.hpp"

namespace troupe::jobs {
namespace {

namespace fs = std::filesystem;

Error refused(std::string detail) { return {ErrorCode::bad_input, std::move(detail)}; }

Result<models::ModelConfig> config_at(const fs::path& folder) {
  std::error_code code;
  if (!fs::is_directory(folder, code)) return refused(fmt::format("model.path: want a Hugging Face folder, got {}, where there is none", folder.string()));
  auto config = models::load_config(folder);
  if (!config) return Error{config.error().code, fmt::format("model.path: {}", config.error().detail)};
  return config;
}

Result<void> check_split(const models::ModelConfig& config, std::string_view key, std::uint32_t degree) {
  auto done = models::check_degree(config, degree);
  if (!done) return Error{done.error().code, fmt::format("{}: {}", key, done.error().detail)};
  return {};
}

Result<void> check(const GrpoConfig& config) {
  auto model = config_at(config.common.model_path);
  if (!model) return model.error();
  if (auto done = check_split(*model, "rollout.tensor_parallel", config.rollout.tensor_parallel); !done) return done;
  if (auto done = check_split(*model, "learner.tensor_parallel", config.learner.tensor_parallel); !done) return done;
  auto tokenizer = open_tokenizer(config.common.model_path);
  if (!tokenizer) return Error{tokenizer.error().code, fmt::format("model.path: {}", tokenizer.error().detail)};
  const std::uint64_t longest = tokenizer->encode(longest_prompt(config.task)).size();
  if (longest + config.rollout.max_tokens > model->positions_max) {
    return refused(fmt::format("rollout.max_tokens: want at most {} (the model's {} positions less the longest prompt's {}), got {}",
                               model->positions_max > longest ? model->positions_max - longest : 0, model->positions_max, longest, config.rollout.max_tokens));
  }
  return {};
}

Result<void> check(const SftConfig& config) {
  std::error_code code;
  if (!fs::is_regular_file(config.data.path, code)) return refused(fmt::format("data.path: want a JSONL file, got {}, where there is none", config.data.path.string()));
  if (config.common.model_path.empty()) return {};
  auto model = config_at(config.common.model_path);
  if (!model) return model.error();
  if (config.data.max_length > model->positions_max) {
    return refused(fmt::format("data.max_length: want at most the model's {} positions, got {}", model->positions_max, config.data.max_length));
  }
  return {};
}

}  // namespace

Result<void> check_job(const JobConfig& config) {
  return std::visit([](const auto& held) { return check(held); }, config);
}

}  // namespace troupe::jobs
