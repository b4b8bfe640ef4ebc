#include "transport/collectives/endpoint.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/base/check.hpp"

namespace troupe::collectives {
namespace {

using namespace std::chrono_literals;

// "member 2 (rank 1), member 3 (rank 1)"
std::string list_members(const Group& group, const std::vector<std::uint32_t>& members) {
  std::string text;
  for (const std::uint32_t member : members) text += (text.empty() ? "" : ", ") + describe_member(group, member);
  return text;
}

}  // namespace

Error Fabric::State::diagnose(std::unique_lock<std::mutex>& lock, Group& group, Endpoint& endpoint, const std::string& waiting_for) {
  const auto& ranks = group.spec->ranks;
  const auto asked = Clock::now();
  const auto grace = std::clamp<Clock::duration>(group.spec->deadline / 2, 100ms, 2000ms);
  if (group.crosses_processes && !group.inquired) {
    group.inquired = true;
    PacketHeader header;
    header.kind = PacketKind::inquiry;
    header.group = group.id;
    for (const Rank rank : std::set<Rank>(ranks.begin(), ranks.end())) {
      if (!is_here(rank)) wire->post(rank, Packet(header), std::make_shared<std::atomic<std::uint32_t>>(1));
    }
  }
  // A member that waits in a collective polls the wire, and so answers; one that is late does not.
  const auto remote = static_cast<std::size_t>(std::ranges::count_if(ranks, [this](Rank rank) { return !is_here(rank); }));
  while (group.crosses_processes && group.progress.size() < remote && !group.failure && Clock::now() < asked + grace) {
    if (!poll(lock)) pause(lock, group, endpoint, asked + grace);
  }
  if (group.failure) return *group.failure;

  for (const auto& [member, other] : group.endpoints) group.progress[member] = other->doing;
  std::vector<std::uint32_t> late;
  std::optional<Error> error;
  for (std::uint32_t member = 0; member < ranks.size(); ++member) {
    const auto known = group.progress.find(member);
    if (known == group.progress.end() || known->second.sequence < endpoint.doing.sequence) {
      late.push_back(member);
    } else if (contradicts(endpoint.doing, known->second)) {
      error = mismatch(group, endpoint.member, endpoint.doing, member, known->second);
    }
  }
  if (!error) {
    const bool is_exchange = endpoint.doing.operation == Operation::exchange;
    error = Error{ErrorCode::deadline_exceeded,
                  fmt::format("collective of group {}: number {}, {}: {} waited {} ms for {}; late: {}", group.spec->name, endpoint.doing.sequence,
                              describe(endpoint.doing), describe_member(group, endpoint.member), group.spec->deadline.count(), waiting_for,
                              late.empty() || is_exchange ? waiting_for : list_members(group, late))};
  }
  fail(group, *error);
  return *group.failure;
}

Port::Port(Fabric::State& fabric, std::shared_ptr<Group> group, std::shared_ptr<Endpoint> endpoint)
    : fabric_(fabric), group_(std::move(group)), endpoint_(std::move(endpoint)) {}

Port::~Port() {
  const std::lock_guard lock(fabric_.mutex);
  fabric_.close(*group_, *endpoint_);
}

Result<void> Port::enter(Operation operation, Element element, std::uint64_t bytes, std::uint32_t root) {
  const std::lock_guard lock(fabric_.mutex);
  if (group_->failure) return *group_->failure;
  TROUPE_CHECK(endpoint_->doing.operation == Operation::none, "a member makes one call at a time");
  endpoint_->doing = {.sequence = endpoint_->doing.sequence + 1, .bytes = bytes, .root = root, .operation = operation, .element = element};
  endpoint_->entered = Clock::now();
  for (std::uint32_t from = 0; from < endpoint_->inbox.size(); ++from) {
    for (const Packet& packet : endpoint_->inbox[from]) {
      const Fingerprint other = packet.header().fingerprint;
      if (!contradicts(endpoint_->doing, other)) continue;
      fabric_.fail(*group_, mismatch(*group_, endpoint_->member, endpoint_->doing, from, other));
      return *group_->failure;
    }
  }
  return {};
}

Result<void> Port::enter_exchange(std::uint32_t peer) {
  const std::lock_guard lock(fabric_.mutex);
  if (group_->failure) return *group_->failure;
  TROUPE_CHECK(endpoint_->doing.operation == Operation::none, "a member makes one call at a time");
  endpoint_->doing.operation = Operation::exchange;
  endpoint_->doing.root = 0;
  endpoint_->doing.bytes = 0;
  endpoint_->doing.element = Element::byte;
  endpoint_->entered = Clock::now();
  ++endpoint_->exchanges[peer];
  return {};
}

Packet Port::packet_to(std::uint32_t to, std::size_t payload_bytes) const {
  PacketHeader header;
  header.group = group_->id;
  header.from = endpoint_->member;
  header.to = to;
  header.fingerprint = endpoint_->doing;  // written by this thread alone
  if (header.fingerprint.operation == Operation::exchange) header.fingerprint.sequence = endpoint_->exchanges[to];
  header.payload_bytes = payload_bytes;
  return Packet(header);
}

void Port::post(Packet packet) {
  const Rank to = spec().ranks[packet.header().to];
  if (fabric_.is_here(to)) {
    const std::lock_guard lock(fabric_.mutex);
    fabric_.deliver(to, std::move(packet));
    return;
  }
  endpoint_->unsent->fetch_add(1);
  fabric_.wire->post(to, std::move(packet), endpoint_->unsent);
}

template <class Ready>
Result<void> Port::wait(std::unique_lock<std::mutex>& lock, const std::string& waiting_for, Ready ready) {
  const auto until = endpoint_->entered + spec().deadline;
  struct Waiting {
    std::size_t& count;
    explicit Waiting(std::size_t& waiting) : count(waiting) { ++count; }
    ~Waiting() { --count; }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;
  } waiting(fabric_.waiting);
  for (;;) {
    if (group_->failure) return *group_->failure;
    if (ready()) return {};
    if (group_->crosses_processes && fabric_.poll(lock)) continue;
    // What came while the lock was given up must not be slept over.
    if (group_->failure || ready()) continue;
    if (Clock::now() >= until) return fabric_.diagnose(lock, *group_, *endpoint_, waiting_for);
    fabric_.pause(lock, *group_, *endpoint_, until);
  }
}

Result<Packet> Port::take(std::uint32_t from) {
  std::unique_lock lock(fabric_.mutex);
  auto& inbox = endpoint_->inbox[from];
  if (inbox.empty()) {
    auto arrived = wait(lock, describe_member(*group_, from), [&] { return !inbox.empty(); });
    if (!arrived) return arrived.error();
  } else if (group_->failure) {
    return *group_->failure;
  }
  Packet packet = std::move(inbox.front());
  inbox.pop_front();
  Fingerprint wanted = endpoint_->doing;
  if (wanted.operation == Operation::exchange) wanted.sequence = endpoint_->exchanges[from];
  const Fingerprint got = packet.header().fingerprint;
  if (got == wanted) return packet;
  fabric_.fail(*group_, mismatch(*group_, endpoint_->member, wanted, from, got));
  return *group_->failure;
}

Result<Packet> Port::take(std::uint32_t from, std::size_t payload_bytes) {
  auto packet = take(from);
  if (!packet || packet->payload().size() == payload_bytes) return packet;
  const std::lock_guard lock(fabric_.mutex);
  fabric_.fail(*group_, Error{ErrorCode::collective_mismatch,
                              fmt::format("collective of group {}: {}: {} wants {} bytes of {}, got {}", spec().name, describe(endpoint_->doing),
                                          describe_member(*group_, member()), payload_bytes, describe_member(*group_, from), packet->payload().size())});
  return *group_->failure;
}

Result<void> Port::leave() {
  std::unique_lock lock(fabric_.mutex);
  auto sent = wait(lock, "its own packets to leave", [&] { return endpoint_->unsent->load() == 0; });
  endpoint_->doing.operation = Operation::none;
  return sent;
}

}  // namespace troupe::collectives
