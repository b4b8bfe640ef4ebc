#include "transport/collectives/fabric.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <thread>

#include "actors/base/check.hpp"
#include "actors/base/wire.hpp"
#include "transport/collectives/endpoint.hpp"
#include "transport/collectives/member_communicator.hpp"

namespace troupe::collectives {
namespace {

using namespace std::chrono_literals;

// Waking a thread costs 5 to 15 us, so a wait spins about that long where it may, and sleeps after.
constexpr auto kSpin = 20us;
// The wire moves only while it is polled. Sleeping for a fraction of the time waited so far bounds what polling adds to a wait.
constexpr auto kPollPauseMin = 10us;
constexpr auto kPollPauseMax = 1000us;
constexpr int kPollPauseFraction = 8;

// An Error's fields: a Result<Error> could not tell its value from its error.
struct FailureNotice {
  ErrorCode code{};
  std::string detail;
  TROUPE_FIELDS(code, detail)
};

PacketHeader control_header(PacketKind kind, std::uint64_t group) {
  PacketHeader header;
  header.kind = kind;
  header.group = group;
  return header;
}

std::shared_ptr<std::atomic<std::uint32_t>> untracked() { return std::make_shared<std::atomic<std::uint32_t>>(1); }

}  // namespace

std::string describe_member(const Group& group, std::uint32_t member) {
  return fmt::format("member {} (rank {})", member, index(group.spec->ranks[member]));
}

Error mismatch(const Group& group, std::uint32_t member, const Fingerprint& doing, std::uint32_t other, const Fingerprint& other_doing) {
  if (other < member) return mismatch(group, other, other_doing, member, doing);
  return {ErrorCode::collective_mismatch,
          fmt::format("collective of group {}: {} is in number {}, {}; {} is in number {}, {}; every member must make the same calls in the same order",
                      group.spec->name, describe_member(group, member), doing.sequence, describe(doing), describe_member(group, other),
                      other_doing.sequence, describe(other_doing))};
}

bool contradicts(const Fingerprint& mine, const Fingerprint& other) {
  if (mine.operation == Operation::none || other.operation == Operation::none) return false;
  if (mine.operation == Operation::exchange || other.operation == Operation::exchange) return false;  // numbered per pair
  return mine.sequence == other.sequence && mine != other;
}

bool Fabric::State::may_spin() const {
  const std::size_t ranks = wire == nullptr ? 1 : wire->ranks_on_host();
  return open_endpoints * ranks <= std::thread::hardware_concurrency();
}

std::shared_ptr<Group> Fabric::State::group(std::uint64_t id) {
  auto& group = groups[id];
  if (group == nullptr) {
    group = std::make_shared<Group>();
    group->id = id;
  }
  return group;
}

void Fabric::State::deliver(Rank from, Packet packet) {
  const PacketHeader header = packet.header();
  if (finished.contains(header.group)) return;
  Group& to = *group(header.group);
  switch (header.kind) {
    case PacketKind::data:
      deliver_data(to, header, std::move(packet));
      return;
    case PacketKind::failed: {
      if (to.failure) return;
      auto notice = decode<FailureNotice>(packet.payload());
      to.failure = notice ? Error{notice->code, std::move(notice->detail)} : Error{ErrorCode::corrupt, "collective: a failure notice that cannot be read"};
      for (auto& [member, endpoint] : to.endpoints) endpoint->arrived.notify_all();
      fail_family(to);
      return;
    }
    case PacketKind::inquiry:
      answer_inquiry(to, from);
      return;
    case PacketKind::progress:
      to.progress[header.from] = header.fingerprint;
      for (auto& [member, endpoint] : to.endpoints) endpoint->arrived.notify_all();
      return;
  }
}

void Fabric::State::deliver_data(Group& group, const PacketHeader& header, Packet packet) {
  const auto at = group.endpoints.find(header.to);
  if (at == group.endpoints.end()) {
    if (!group.closed.contains(header.to)) group.early.push_back(std::move(packet));
    return;
  }
  Endpoint& endpoint = *at->second;
  if (header.from >= endpoint.inbox.size()) return;
  // Seen at once even where this member waits for another one.
  if (contradicts(endpoint.doing, header.fingerprint)) {
    fail(group, mismatch(group, endpoint.member, endpoint.doing, header.from, header.fingerprint));
    return;
  }
  endpoint.inbox[header.from].push_back(std::move(packet));
  endpoint.arrived.notify_all();
}

void Fabric::State::answer_inquiry(const Group& group, Rank to) {
  for (const auto& [member, endpoint] : group.endpoints) {
    PacketHeader header = control_header(PacketKind::progress, group.id);
    header.from = member;
    header.fingerprint = endpoint->doing;
    wire->post(to, Packet(header), untracked());
  }
}

void Fabric::State::fail(Group& group, Error error) {
  if (group.failure) return;
  group.failure = std::move(error);
  for (auto& [member, endpoint] : group.endpoints) endpoint->arrived.notify_all();
  if (!group.crosses_processes) return;
  Bytes encoded;
  encode(encoded, FailureNotice{group.failure->code, group.failure->detail});
  PacketHeader header = control_header(PacketKind::failed, group.id);
  header.payload_bytes = encoded.size();
  for (const Rank rank : std::set<Rank>(group.spec->ranks.begin(), group.spec->ranks.end())) {
    if (is_here(rank) || lost.contains(rank)) continue;
    Packet packet(header);
    std::ranges::copy(encoded, packet.payload().begin());
    wire->post(rank, std::move(packet), untracked());
  }
}

void Fabric::State::fail_family(Group& group) {
  for (auto& [id, other] : groups) {
    if (other->spec && other->spec->family == group.id) fail(*other, *group.failure);
  }
}

void Fabric::State::learn(Group& group, const GroupSpec& spec) const {
  if (group.spec) return;
  group.spec = spec;
  group.crosses_processes = std::ranges::any_of(spec.ranks, [this](Rank rank) { return !is_here(rank); });
}

void Fabric::State::close(Group& group, Endpoint& endpoint) {
  group.endpoints.erase(endpoint.member);
  group.closed.insert(endpoint.member);
  --open_endpoints;
  const auto here = std::ranges::count_if(group.spec->ranks, [this](Rank rank) { return is_here(rank); });
  if (static_cast<std::size_t>(here) > group.closed.size()) return;
  finished.insert(group.id);
  groups.erase(group.id);
}

bool Fabric::State::poll(std::unique_lock<std::mutex>& lock) {
  if (polling) return false;
  polling = true;
  const std::shared_ptr<Wire> polled = wire;
  std::vector<std::pair<Rank, Packet>> packets;
  lock.unlock();
  const bool moved = polled->poll([&](Rank from, Packet packet) { packets.emplace_back(from, std::move(packet)); });
  lock.lock();
  polling = false;
  for (auto& [from, packet] : packets) deliver(from, std::move(packet));
  return moved;
}

void Fabric::State::pause(std::unique_lock<std::mutex>& lock, const Group& group, Endpoint& endpoint, Clock::time_point until) {
  const auto waited = Clock::now() - endpoint.entered;
  if (waited < kSpin && may_spin()) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
    return;
  }
  if (!group.crosses_processes) {
    endpoint.arrived.wait_until(lock, until);
    return;
  }
  // The kernel's default timer slack of 50 us would be most of a short pause.
  thread_local const bool precise = prctl(PR_SET_TIMERSLACK, 1000UL) == 0;
  (void)precise;
  const auto pause = std::clamp<Clock::duration>(waited / kPollPauseFraction, kPollPauseMin, kPollPauseMax);
  endpoint.arrived.wait_until(lock, std::min(until, Clock::now() + pause));
}

Fabric::Fabric() : state_(std::make_unique<State>()) {}

Fabric::Fabric(std::shared_ptr<Wire> wire) : Fabric() { attach(std::move(wire)); }

Fabric::~Fabric() { TROUPE_CHECK(state_->open_endpoints == 0, "a communicator must not outlive its fabric"); }

Fabric& Fabric::process() {
  // Never destroyed: threads of the process may end after its static objects.
  static Fabric& fabric = *new Fabric;
  return fabric;
}

void Fabric::attach(std::shared_ptr<Wire> wire) {
  const std::lock_guard lock(state_->mutex);
  TROUPE_CHECK(state_->open_endpoints == 0, "a wire is attached before the first group is opened and detached after the last");
  state_->wire = std::move(wire);
}

Result<std::unique_ptr<Communicator>> Fabric::open(const GroupSpec& spec, std::uint32_t member) {
  const std::lock_guard lock(state_->mutex);
  const auto refuse = [&](const std::string& why) {
    return Error{ErrorCode::bad_input, fmt::format("group {}: member {} {}", spec.name, member, why)};
  };
  if (member >= spec.ranks.size()) return refuse(fmt::format("is not one of its {} members", spec.ranks.size()));
  if (!state_->is_here(spec.ranks[member])) return refuse(fmt::format("lives on rank {}, not here", index(spec.ranks[member])));
  for (const Rank rank : spec.ranks) {
    const auto lost = state_->lost.find(rank);
    if (lost != state_->lost.end()) return Error{ErrorCode::peer_lost, fmt::format("group {}: rank {} is lost: {}", spec.name, index(rank), lost->second)};
  }
  if (state_->finished.contains(spec.id)) return refuse("was open before; a new group needs a new id");

  const std::shared_ptr<Group> group = state_->group(spec.id);
  state_->learn(*group, spec);
  if (group->spec->ranks != spec.ranks) return refuse("names other ranks than a member that opened the group before");
  if (group->endpoints.contains(member) || group->closed.contains(member)) return refuse("was open before; a new group needs a new id");

  auto endpoint = std::make_shared<Endpoint>();
  endpoint->member = member;
  endpoint->inbox.resize(spec.ranks.size());
  endpoint->exchanges.resize(spec.ranks.size());
  group->endpoints.emplace(member, endpoint);
  ++state_->open_endpoints;
  const auto root = state_->groups.find(spec.family);
  if (!group->failure && root != state_->groups.end() && root->second->failure) state_->fail(*group, *root->second->failure);
  if (!group->failure && state_->aborted) state_->fail(*group, *state_->aborted);
  std::vector<Packet> early;
  early.swap(group->early);
  for (Packet& packet : early) state_->deliver(spec.ranks[member], std::move(packet));
  return std::make_unique<MemberCommunicator>(*this, std::make_unique<Port>(*state_, group, endpoint));
}

void Fabric::abort(std::uint64_t group, Error error) {
  const std::lock_guard lock(state_->mutex);
  if (state_->finished.contains(group)) return;
  state_->fail(*state_->group(group), std::move(error));
}

void Fabric::abort(const GroupSpec& spec, const Error& error) {
  const std::lock_guard lock(state_->mutex);
  if (state_->finished.contains(spec.id)) return;
  const std::shared_ptr<Group> group = state_->group(spec.id);
  state_->learn(*group, spec);
  state_->fail(*group, error);
  state_->fail_family(*group);
}

void Fabric::abort_all(const Error& error) {
  const std::lock_guard lock(state_->mutex);
  state_->aborted = error;
  for (auto& [id, group] : state_->groups) {
    if (!group->endpoints.empty()) state_->fail(*group, error);
  }
}

void Fabric::reopen() {
  const std::lock_guard lock(state_->mutex);
  state_->aborted.reset();
}

std::size_t Fabric::waiting() const {
  const std::lock_guard lock(state_->mutex);
  return state_->waiting;
}

void Fabric::lose(Rank rank, const std::string& reason) {
  const std::lock_guard lock(state_->mutex);
  state_->lost.emplace(rank, reason);
  for (auto& [id, group] : state_->groups) {
    if (!group->spec || !std::ranges::count(group->spec->ranks, rank)) continue;
    state_->fail(*group, Error{ErrorCode::peer_lost, fmt::format("collective of group {}: rank {} is lost: {}", group->spec->name, index(rank), reason)});
  }
}

std::vector<std::unique_ptr<Communicator>> local_communicators(std::uint32_t size) {
  static std::atomic<std::uint64_t> groups{0};
  // Each set has a fabric of its own, which lives as long as its members.
  auto fabric = std::make_shared<Fabric>();
  const GroupSpec spec{.id = ++groups, .name = "local", .ranks = std::vector<Rank>(size), .deadline = 600s};
  std::vector<std::unique_ptr<Communicator>> members;
  for (std::uint32_t member = 0; member < size; ++member) {
    auto opened = fabric->open(spec, member);
    TROUPE_CHECK(opened.has_value(), "a new group of this process opens");
    static_cast<MemberCommunicator&>(**opened).keep_alive(fabric);
    members.push_back(std::move(*opened));
  }
  return members;
}

}  // namespace troupe::collectives
