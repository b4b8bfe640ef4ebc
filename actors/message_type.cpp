#include "actors/message_type.hpp"

#include <map>
#include <mutex>

#include "actors/base/check.hpp"
#include "actors/envelope.hpp"

namespace troupe {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<TypeId, const MessageType*> types;
};
Registry& registry() {
  static Registry instance;
  return instance;
}

[[maybe_unused]] const bool kRuntimeTypes = (message_type<Error>(), message_type<Down>(), message_type<Done>(), true);

}  // namespace

void register_message_type(const MessageType& type) {
  const std::lock_guard lock(registry().mutex);
  const auto [at, fresh] = registry().types.emplace(type.id, &type);
  TROUPE_CHECK(fresh || at->second == &type, "two message types share a name");
}

const MessageType* find_message_type(TypeId id) {
  const std::lock_guard lock(registry().mutex);
  const auto at = registry().types.find(id);
  return at == registry().types.end() ? nullptr : at->second;
}

std::vector<const MessageType*> message_types() {
  const std::lock_guard lock(registry().mutex);
  std::vector<const MessageType*> all;
  for (const auto& [id, type] : registry().types) all.push_back(type);
  return all;
}

}  // namespace troupe
