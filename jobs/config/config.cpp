#include "jobs/config/config.hpp"

#include "jobs/tasks/task.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "jobs/config/binder.hpp"

namespace troupe::jobs {
namespace {

Error refused(std::string detail) { return {ErrorCode::bad_input, std::move(detail)}; }

template <class C>
Result<JobConfig> bind(const Settings& settings) {
  C config;
  Binder binder(settings);
  C::each_key(config, binder);
  if (auto done = binder.finish(); !done) return done.error();
  if (auto done = config.check(); !done) return done.error();
  return JobConfig(std::move(config));
}

template <class C>
std::vector<KeyValue> values_of(const C& config) {
  std::vector<KeyValue> values;
  C::each_key(config, [&](const Key& key, const auto& field) { values.push_back({key, setting_of(field)}); });
  std::sort(values.begin(), values.end(), [](const KeyValue& a, const KeyValue& b) { return a.key.name < b.key.name; });
  return values;
}

// The trainer says it too, in its own names.
Result<void> check_schedule(const OptimizerConfig& optim, std::string_view key, std::uint64_t steps) {
  if (optim.lr_scheduler_type != "cosine" || optim.lr_warmup_steps < steps) return {};
  return refused(fmt::format("{}: want fewer than the {} steps that cosine ends at, got {}", key, steps, optim.lr_warmup_steps));
}

}  // namespace

Result<void> GrpoConfig::check() const {
  if (common.model_path.empty()) return refused("model.path: missing; want the folder of the model to start from");
  if (auto done = check_schedule(actor.optim, "actor.optim.lr_warmup_steps", std::uint64_t{common.steps} * actor.ppo_epochs); !done) return done;
  if (algorithm.adv_estimator == "grpo_passk" && rollout.n < 2) return refused("rollout.n: want at least 2 with algorithm.adv_estimator = grpo_passk, got 1");
  if (val.size > held_out_count(task)) return refused(fmt::format("val.size: want at most the task's {} held-out problems, got {}", held_out_count(task), val.size));
  const std::uint64_t sequences = std::uint64_t{data.train_batch_size} * rollout.n;
  if (learner.data_parallel > sequences) {
    return refused(fmt::format("learner.data_parallel: want at most data.train_batch_size x rollout.n = {}, got {}", sequences, learner.data_parallel));
  }
  return {};
}

Result<void> SftConfig::check() const {
  if (data.path.empty()) return refused("data.path: want a JSONL file, got nothing");
  if (auto done = check_schedule(optim, "optim.lr_warmup_steps", common.steps); !done) return done;
  if (!common.model_path.empty()) return {};
  if (init.heads % init.kv_heads != 0) return refused(fmt::format("model.init.kv_heads: want a divisor of model.init.heads = {}, got {}", init.heads, init.kv_heads));
  if (init.head_dim == 0 && init.hidden_size % init.heads != 0) {
    return refused(fmt::format("model.init.heads: want a divisor of model.init.hidden_size = {} (or a head_dim), got {}", init.hidden_size, init.heads));
  }
  if (data.max_length > init.positions_max) {
    return refused(fmt::format("data.max_length: want at most model.init.positions_max = {}, got {}", init.positions_max, data.max_length));
  }
  return {};
}

Result<JobConfig> make_job(const Settings& settings) {
  const auto job = settings.find("job");
  if (job == settings.end()) return refused("job: missing; want one of grpo, sft");
  auto named = read_setting(choice("job", "", {"grpo", "sft"}), job->second);
  if (!named) return named.error();
  return std::get<std::string>(*named) == SftConfig::kJob ? bind<SftConfig>(settings) : bind<GrpoConfig>(settings);
}

Result<JobConfig> read_job(const std::filesystem::path& file, std::span<const std::string> overrides) {
  auto settings = read_job_file(file);
  if (!settings) return settings.error();
  if (auto done = add_overrides(overrides, *settings); !done) return done.error();
  return make_job(*settings);
}

const CommonConfig& common(const JobConfig& config) {
  return std::visit([](const auto& held) -> const CommonConfig& { return held.common; }, config);
}

std::vector<KeyValue> key_values(const JobConfig& config) {
  return std::visit([](const auto& held) { return values_of(held); }, config);
}

std::vector<KeyValue> schema(std::string_view job) {
  return job == SftConfig::kJob ? values_of(SftConfig{}) : values_of(GrpoConfig{});
}

std::string canonical_text(const JobConfig& config) {
  std::string text;
  for (const auto& [key, value] : key_values(config)) {
    if (key.effect == Effect::result) text += fmt::format("{} = {}\n", key.name, print(value));
  }
  return text;
}

Digest128 config_digest(const JobConfig& config) { 
  const std::string text = canonical_text(config);
  return digest128(std::as_bytes(std::span(text)));
 }

std::string job_file_text(const JobConfig& config) {
  std::string text;
  for (const auto& [key, value] : key_values(config)) text += fmt::format("{} = {}\n", key.name, print(value));
  return text;
}

std::optional<ConfigDifference> first_difference(const JobConfig& left, const JobConfig& right) {
  if (left.index() != right.index()) return ConfigDifference{"job", common(left).job, common(right).job};
  const auto lefts = key_values(left), rights = key_values(right);
  for (std::size_t i = 0; i < lefts.size(); ++i) {
    if (lefts[i].key.effect != Effect::result || lefts[i].value == rights[i].value) continue;
    return ConfigDifference{std::string(lefts[i].key.name), print(lefts[i].value), print(rights[i].value)};
  }
  return std::nullopt;
}

}  // namespace troupe::jobs
