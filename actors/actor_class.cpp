#include "actors/actor_class.hpp"

#include <map>
#include <mutex>

#include "actors/base/check.hpp"

namespace troupe {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<TypeId, const ActorClass*> classes;
};
Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

void register_actor_class(const ActorClass& actor_class) {
  const std::lock_guard lock(registry().mutex);
  const auto [at, fresh] = registry().classes.emplace(actor_class.id, &actor_class);
  TROUPE_CHECK(fresh || at->second == &actor_class, "two actor classes share a name");
}

const ActorClass* find_actor_class(TypeId id) {
  const std::lock_guard lock(registry().mutex);
  const auto at = registry().classes.find(id);
  return at == registry().classes.end() ? nullptr : at->second;
}

}  // namespace troupe
