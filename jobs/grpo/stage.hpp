#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "actors/record/history.hpp"
#include "actors/system.hpp"
#include "jobs/config/grpo_config.hpp"
#include "transport/world.hpp"

// What re-executes a recorded segment: the environment and the messages that the actors had when it was recorded.
namespace troupe::jobs::grpo {

/// Installs the environment from which the segment began, or (a re-execution from its middle) that of the checkpoint of `step`.
/// threads: of each actor; 0: as make_environment decides. Errors: those of make_environment.
Result<void> install_segment(const GrpoConfig& config, const transport::World& world, const std::filesystem::path& run, const record::Segment& segment,
                             std::optional<std::uint64_t> step = std::nullopt, std::uint32_t threads = 0);

/// Gives the segment's messages from outside to the actors of this rank; `taken(actor)` is how many deliveries an actor has behind it.
/// Errors: unsupported for a type that this build does not know.
Result<void> inject_outside(System& system, const record::Segment& segment, const std::function<std::uint64_t(ActorId)>& taken = {});

/// Between two training steps one message is on its way: the director's to itself, which begins `step`.
void inject_step(System& system, Origin origin, std::uint64_t step);

}  // namespace troupe::jobs::grpo
