#include "jobs/grpo/stage.hpp"

#include <algorithm>

#include "jobs/grpo/environment.hpp"
#include "jobs/grpo/setting.hpp"

namespace troupe::jobs::grpo {

Result<void> install_segment(const GrpoConfig& config, const transport::World& world, const std::filesystem::path& run, const record::Segment& segment,
                             std::optional<std::uint64_t> step, std::uint32_t threads) {
  // A fresh attempt says so in its Start; from then on a checkpoint of step 0 counts as one.
  const bool is_fresh = std::any_of(segment.outside.begin(), segment.outside.end(), [](const record::RecordedPayload& each) {
    const Result<Start> start = each.type == message_type<Start>().id ? decode<Start>(each.payload) : Result<Start>(Start{.is_fresh = false});
    return start && start->is_fresh;
  });
  if (!step && !is_fresh) step = segment.start_step;
  Result<Environment> environment = make_environment(config, world, run, step);
  if (!environment) return environment.error();
  if (threads > 0) environment->threads = threads;
  install(std::move(*environment));
  return {};
}

Result<void> inject_outside(System& system, const record::Segment& segment, const std::function<std::uint64_t(ActorId)>& taken) {
  for (const record::RecordedPayload& each : segment.outside) {
    if (!system.find_local(each.to) || (taken && each.number < taken(each.to))) continue;
    const MessageType* type = find_message_type(each.type);
    if (type == nullptr) return Error{ErrorCode::unsupported, "the record holds a message from outside of type " + each.type_name + ", which this build does not know"};
    Result<EnvelopePtr> envelope = type->decode(each.payload);
    if (!envelope) return envelope.error();
    system.inject({each.to, system.rank()}, std::move(*envelope), each.kind, each.origin);
  }
  return {};
}

void inject_step(System& system, Origin origin, std::uint64_t step) {
  system.inject({actor_id("director"), system.rank()}, make_envelope<Step>(step), EnvelopeKind::tell, origin);
}

}  // namespace troupe::jobs::grpo
