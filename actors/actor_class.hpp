#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/envelope.hpp"

namespace troupe {

class Cell;
class Context;

/// One message type that a class takes. start runs the handler: it replies through the cell, or leaves a suspended coroutine with it.
struct HandlerEntry {
  const MessageType* type;
  const MessageType* reply;  ///< null: nothing is replied (downs)
  void (*start)(void* actor, Cell& cell, Envelope& envelope);
};

/// What the runtime knows of an actor class with constructor arguments of certain types.
struct ActorClass {
  TypeId id{};
  std::string_view name;
  Result<void*> (*create)(BytesView arguments);
  void (*destroy)(void* actor);
  std::vector<HandlerEntry> handlers;  ///< ascending by type
  /// Of classes with `serialize`; null for others.
  ContentDigest (*digest)(const void* actor) = nullptr;
  Value (*to_value)(const void* actor) = nullptr;
  Result<void> (*restore)(void* actor, const Value& state) = nullptr;

  const HandlerEntry* find(TypeId type) const {
    const auto at = std::lower_bound(handlers.begin(), handlers.end(), type, [](const HandlerEntry& entry, TypeId id_) { return entry.type->id < id_; });
    return at != handlers.end() && at->type->id == type ? &*at : nullptr;
  }
};

void register_actor_class(const ActorClass& actor_class);
const ActorClass* find_actor_class(TypeId id);

}  // namespace troupe
