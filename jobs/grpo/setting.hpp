#pragma once

#include <filesystem>
#include <optional>

#include "jobs/grpo/environment.hpp"
#include "scheduler/plan.hpp"
#include "transport/world.hpp"

namespace troupe::jobs::grpo {

/// The environment of a run that starts from its model (no checkpoint), or from the checkpoint of a step in `run`; its ways out are
/// empty. Chooses the kernels' instruction set. Errors: those of the files; unsupported.
Result<Environment> make_environment(const GrpoConfig& config, const transport::World& world, const std::filesystem::path& run, std::optional<std::uint64_t> checkpoint);

/// Places the run's actors on the ranks of the world, all of which call it. Errors: resource_short with every reason.
Result<scheduler::Plan> plan_together(const GrpoConfig& config, transport::World& world);

}  // namespace troupe::jobs::grpo
