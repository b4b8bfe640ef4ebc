#include "actors/context.hpp"

#include "actors/base/check.hpp"
#include "actors/base/philox.hpp"
#include "actors/system.hpp"

namespace troupe {

ActorRef Context::self() const { return cell_.ref(); }
std::string_view Context::name() const { return cell_.name(); }
ActorRef Context::ref(std::string_view logical_name) const { return cell_.system().ref(logical_name); }

void Context::send(ActorRef to, EnvelopePtr envelope) { cell_.send(to, std::move(envelope)); }

std::shared_ptr<AskSlot> Context::send_ask(ActorRef to, EnvelopePtr message, Time deadline) {
  auto slot = std::make_shared<AskSlot>();
  message->kind = EnvelopeKind::ask;
  message->origin = {cell_.id(), cell_.next_sequence()};
  message->correlation = message->origin.sequence;
  message->sender = cell_.ref();
  cell_.await_reply(*message, to, slot, deadline);
  cell_.system().route(to, std::move(message), &cell_);
  return slot;
}

void Context::start_timer(EnvelopePtr envelope, Time delay) { cell_.start_timer(std::move(envelope), delay); }

Time Context::now() {
  System& system = cell_.system();
  const Time real = system.executor_.now();
  if (system.options_.observer == nullptr) return real;
  const Result<Time> seen = system.options_.observer->on_clock_read(cell_.id(), cell_.delivery_number(), real);
  if (!seen) {
    system.fatal(seen.error());
    return real;
  }
  return *seen;
}

std::uint64_t Context::random() {
  const std::array<std::uint32_t, 4> words =
      draw({.seed = cell_.system().options_.seed, .purpose = Purpose::jitter, .prompt = static_cast<std::uint64_t>(cell_.id()),
            .sample = static_cast<std::uint32_t>(cell_.delivery_number()), .position = static_cast<std::uint32_t>(cell_.next_draw())});
  return std::uint64_t{words[0]} << 32 | words[1];
}

Result<ActorRef> Context::spawn_class(std::string name, const ActorClass& actor_class, Bytes arguments, const SpawnOptions& options) {
  Result<ActorRef> child = cell_.system().spawn_class(std::move(name), actor_class, std::move(arguments), options, cell_.ref());
  if (child) cell_.add_child(*child);
  return child;
}

std::shared_ptr<AskSlot> Context::spawn_class_on(Rank rank, std::string name, const ActorClass& actor_class, Bytes arguments, const SpawnOptions& options) {
  (void)message_type<ActorRef>();
  cell_.add_child({actor_id(name), rank});
  return send_ask({kOutside, rank}, make_envelope<SpawnActor>(actor_class.id, std::move(name), std::move(arguments), options, cell_.ref()));
}

Rank Context::place(std::string_view name, const ActorClass& actor_class) const {
  const System& system = cell_.system();
  return system.options_.place ? system.options_.place(name, actor_class.name) : system.rank_;
}

void Context::stop() { cell_.stop_after_handler({ErrorCode::ok, {}}); }
void Context::stop(ActorRef other) { cell_.system().route_system(other, make_envelope<StopActor>(Error{ErrorCode::ok, {}})); }
void Context::monitor(ActorRef other) { cell_.watch(other, false); }

void Context::link(ActorRef other) {
  cell_.watch(other, true);
  cell_.system().route_system(other, make_envelope<LinkActor>(cell_.ref()));
}

void Context::note_digest(std::string_view what, const ContentDigest& digest) {
  System& system = cell_.system();
  if (system.options_.observer == nullptr) return;
  if (Result<void> seen = system.options_.observer->on_note(cell_.id(), cell_.delivery_number(), what, digest); !seen) system.fatal(seen.error());
}

void Context::begin_step(std::uint64_t step) {
  System& system = cell_.system();
  if (system.options_.observer == nullptr) return;
  if (Result<void> seen = system.options_.observer->on_begin_step(cell_.id(), cell_.delivery_number(), step); !seen) system.fatal(seen.error());
}

}  // namespace troupe
