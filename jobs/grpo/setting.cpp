#include "jobs/grpo/setting.hpp"

#include <algorithm>

#include "actors/record/run_record.hpp"
#include "jobs/compute.hpp"
#include "jobs/grpo/cast.hpp"
#include "jobs/grpo/gather.hpp"
#include "jobs/job.hpp"
#include "models/numerics/processor.hpp"
#include "models/parameters.hpp"
#include "models/weights.hpp"

namespace troupe::jobs {
namespace grpo {

Result<Environment> make_environment(const GrpoConfig& config, const transport::World& world, const std::filesystem::path& run, std::optional<std::uint64_t> checkpoint) {
  Environment environment{.config = config};
  if (Result<void> checked = models::numerics::check_processor(); !checked) return checked.error();
  if (Result<void> chosen = models::numerics::select_target(config.common.simd); !chosen) return chosen.error();
  if (Result<void> checked = models::numerics::check_float_environment(); !checked) return checked.error();
  Result<models::ModelFolder> model = models::load_model_folder(config.common.model_path);
  if (!model) return model.error();
  Result<models::Tokenizer> tokenizer = models::Tokenizer::load(config.common.model_path);
  if (!tokenizer) return tokenizer.error();
  environment.model = model->config;
  environment.tokenizer = std::move(*tokenizer);
  models::store_as(model->weights, models::Dtype::float32);
  environment.start_weights = std::make_shared<const models::Weights>(std::move(model->weights));
  const auto sharers = static_cast<std::uint32_t>(std::count(world.hosts().begin(), world.hosts().end(), world.hosts().at(index(world.rank()))));
  environment.threads = config.common.threads > 0 ? config.common.threads : std::max(1U, usable_cores() / std::max(1U, sharers));
  if (checkpoint) {
    Result<record::RunRecord> record = record::RunRecord::open(run);
    if (!record) return record.error();
    Result<Value> value = record->load_checkpoint(*checkpoint);
    if (!value) return value.error();
    auto start = std::make_shared<Checkpoint>();
    if (Result<void> read = from_value(*value, *start); !read) return Error{read.error().code, "checkpoint of step " + std::to_string(*checkpoint) + ": " + read.error().detail};
    environment.start = std::move(start);
  }
  return environment;
}

Result<scheduler::Plan> plan_together(const GrpoConfig& config, transport::World& world) {
  Result<scheduler::LocalResources> here = scheduler::find_local_resources();
  if (Result<void> agreed = agree(world, here); !agreed) return agreed.error();
  Result<std::vector<scheduler::LocalResources>> all = gather(world, *here);
  if (!all) return all.error();
  Result<std::vector<scheduler::Request>> wanted = requests_of(JobConfig(config));
  if (!wanted) return wanted.error();
  return scheduler::make_plan(scheduler::combine(*all), std::move(*wanted));
}

}  // namespace grpo

Result<std::vector<scheduler::Request>> requests_of(const JobConfig& config) {
  const auto* grpo = std::get_if<GrpoConfig>(&config);
  if (grpo == nullptr) return std::vector<scheduler::Request>{{.name = "sft", .rank = Rank{0}}};
  Result<models::ModelConfig> model = models::load_config(grpo->common.model_path);
  if (!model) return model.error();
  return grpo::requests(*grpo, models::parameter_count(*model) * sizeof(float));
}

}  // namespace troupe::jobs
