#include <cstdio>
#include <string>

#include "actors/system.hpp"
#include "transport/world.hpp"

struct Greet {
  using Reply = std::string;
  std::string name;
  TROUPE_FIELDS(name)
};

class Greeter {
 public:
  std::string greet(const Greet& message) { return "hello " + message.name + ", you are number " + std::to_string(++greeted_); }
  static void handlers(troupe::Handlers<Greeter>& on) { on.message<&Greeter::greet>(); }
  TROUPE_FIELDS(greeted_)  // one serialize: checkpoint, digest, debugger

 private:
  int greeted_ = 0;
};

int main() {
  auto world = std::move(*troupe::transport::World::join());  // mpirun's ranks, or this process alone
  auto executor = troupe::make_pool_executor(2);
  troupe::System system(*executor, {.link = world->link()});
  const troupe::Rank last{world->size() - 1};
  if (system.rank() == last) (void)system.spawn<Greeter>("greeter");
  (void)world->all_gather({});  // the greeter is there
  if (system.rank() == troupe::Rank{0}) {
    const auto reply = system.ask<Greet>({troupe::actor_id("greeter"), last}, "world").get();
    std::printf("%s\n", reply ? reply->c_str() : reply.error().detail.c_str());
  }
  (void)world->all_gather({});  // and is not needed any more
  system.stop();
  return world->leave() ? 0 : 1;
}
