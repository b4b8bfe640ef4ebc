#pragma once

#include <cstdint>
#include <string_view>

#include "actors/base/digest.hpp"

namespace troupe {

/// Digest of an actor's logical name ("learner", "rollout/3"): the same on any number of ranks and in a replay.
enum class ActorId : std::uint64_t {};
/// Digest of a message's or an actor class's name.
enum class TypeId : std::uint64_t {};
/// A process of the job. Never part of a message's content, a digest or a random key.
enum class Rank : std::uint32_t {};

inline ActorId actor_id(std::string_view logical_name) { return ActorId{digest64(logical_name)}; }
inline std::uint32_t index(Rank rank) { return static_cast<std::uint32_t>(rank); }

}  // namespace troupe
