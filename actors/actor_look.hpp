#pragma once

#include <cstdint>
#include <source_location>
#include <string_view>
#include <vector>

#include "actors/actor_class.hpp"
#include "actors/envelope.hpp"

namespace troupe {

/// An actor from inside, for a debugger. Its pointers are good while nothing runs.
struct ActorLook {
  ActorId id{};
  std::string_view name;
  const ActorClass* actor_class = nullptr;
  const void* actor = nullptr;        ///< null: stopped
  std::uint64_t deliveries = 0;
  std::uint64_t sent = 0;
  const Envelope* current = nullptr;  ///< the message whose handler is suspended
  struct OpenAsk {
    std::uint64_t sequence = 0;
    ActorRef to;
    const MessageType* type = nullptr;
    bool is_awaited = false;          ///< the suspended handler stands at this one
    std::source_location where;       ///< its co_await
  };
  std::vector<OpenAsk> asks;               ///< in the order of asking
  std::vector<const Envelope*> mailbox;    ///< in a replay: arrived, not yet due; by origin
  std::vector<const Envelope*> timers;     ///< in a replay: set, not yet fired; by sequence
};

}  // namespace troupe
