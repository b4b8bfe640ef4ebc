#include "transport/collectives/member_communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "actors/base/check.hpp"
#include "actors/base/digest.hpp"

namespace troupe::collectives {
namespace {

// Above this, halving moves less; below, doubling takes fewer rounds. Both have the tree's bits.
constexpr std::size_t kDoublingBytesMax = 32768;

template <class T>
constexpr Element element_of() {
  return sizeof(T) == 4 ? Element::float32 : Element::float64;
}

template <class T>
std::span<const T> elements(const Packet& packet) {
  return {reinterpret_cast<const T*>(packet.payload().data()), packet.payload().size() / sizeof(T)};
}

// The lower members' partial sum stands on the left, as in the tree.
template <class T>
void add_above(std::span<T> data, std::span<const T> above) {
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = data[i] + above[i];
}
template <class T>
void add_below(std::span<T> data, std::span<const T> below) {
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = below[i] + data[i];
}

template <class T>
std::span<T> piece_span(std::span<T> data, std::uint32_t member, std::uint32_t size) {
  const auto [first, last] = piece_of(data.size(), member, size);
  return data.subspan(first, last - first);
}

}  // namespace

MemberCommunicator::MemberCommunicator(Fabric& fabric, std::unique_ptr<Port> port) : fabric_(fabric), port_(std::move(port)) {}

void MemberCommunicator::send(std::uint32_t to, BytesView payload) {
  Packet packet = port_->packet_to(to, payload.size());
  std::ranges::copy(payload, packet.payload().begin());
  port_->post(std::move(packet));
}

Result<void> MemberCommunicator::all_reduce_sum(std::span<float> data) { return all_reduce(data); }
Result<void> MemberCommunicator::all_reduce_sum(std::span<double> data) { return all_reduce(data); }
Result<void> MemberCommunicator::reduce_scatter_sum(std::span<float> data, std::span<float> piece) { return reduce_scatter(data, piece); }
Result<void> MemberCommunicator::reduce_scatter_sum(std::span<double> data, std::span<double> piece) { return reduce_scatter(data, piece); }

template <class T>
Result<void> MemberCommunicator::all_reduce(std::span<T> data) {
  if (auto entered = port_->enter(Operation::all_reduce_sum, element_of<T>(), data.size_bytes()); !entered) return entered;
  const auto bytes = std::as_writable_bytes(data);
  Result<void> done;
  if (!std::has_single_bit(size())) {
    done = reduce_to_first(data);
    if (done) done = send_down(bytes, 0);
  } else if (data.size_bytes() <= kDoublingBytesMax) {
    done = reduce_by_doubling(data);
  } else {
    done = reduce_by_halving(data);
    if (done) done = gather_pieces(bytes, sizeof(T));
  }
  return done ? port_->leave() : done;
}

template <class T>
Result<void> MemberCommunicator::reduce_scatter(std::span<T> data, std::span<T> piece) {
  const auto mine = piece_span(data, member(), size());
  TROUPE_CHECK(mine.size() == piece.size(), "piece has the size that piece_of gives this member");
  if (auto entered = port_->enter(Operation::reduce_scatter_sum, element_of<T>(), data.size_bytes()); !entered) return entered;
  if (std::has_single_bit(size())) {
    if (auto reduced = reduce_by_halving(data); !reduced) return reduced;
    std::ranges::copy(mine, piece.begin());
    return port_->leave();
  }
  if (auto reduced = reduce_to_first(data); !reduced) return reduced;
  if (member() == 0) {
    for (std::uint32_t to = 1; to < size(); ++to) send(to, std::as_bytes(piece_span(data, to, size())));
    std::ranges::copy(mine, piece.begin());
  } else {
    const auto packet = port_->take(0, piece.size_bytes());
    if (!packet) return packet.error();
    std::ranges::copy(packet->payload(), std::as_writable_bytes(piece).begin());
  }
  return port_->leave();
}

// Level by level of the tree: after the round of `step`, blocks of 2 x step members hold their sum.
template <class T>
Result<void> MemberCommunicator::reduce_by_doubling(std::span<T> data) {
  for (std::uint32_t step = 1; step < size(); step *= 2) {
    const std::uint32_t partner = member() ^ step;
    send(partner, std::as_bytes(data));
    const auto packet = port_->take(partner, data.size_bytes());
    if (!packet) return packet.error();
    if (partner > member()) add_above(data, elements<T>(*packet));
    else add_below(data, elements<T>(*packet));
  }
  return {};
}

// The same levels, but each round gives the partner half of the pieces that are left: those whose number agrees with the partner's in
// one more low bit. In the end piece m of member m holds the whole sum.
template <class T>
Result<void> MemberCommunicator::reduce_by_halving(std::span<T> data) {
  for (std::uint32_t step = 1; step < size(); step *= 2) {
    const std::uint32_t partner = member() ^ step;
    const auto each_piece = [&](std::uint32_t of, auto&& use) {
      for (std::uint32_t piece = of & (2 * step - 1); piece < size(); piece += 2 * step) use(piece_span(data, piece, size()));
    };
    std::size_t given = 0;
    std::size_t kept = 0;
    each_piece(partner, [&](std::span<T> piece) { given += piece.size_bytes(); });
    each_piece(member(), [&](std::span<T> piece) { kept += piece.size_bytes(); });

    Packet out = port_->packet_to(partner, given);
    auto at = out.payload().begin();
    each_piece(partner, [&](std::span<T> piece) { at = std::ranges::copy(std::as_bytes(piece), at).out; });
    port_->post(std::move(out));

    const auto packet = port_->take(partner, kept);
    if (!packet) return packet.error();
    auto rest = elements<T>(*packet);
    each_piece(member(), [&](std::span<T> piece) {
      if (partner > member()) add_above(piece, rest.first(piece.size()));
      else add_below(piece, rest.first(piece.size()));
      rest = rest.subspan(piece.size());
    });
  }
  return {};
}

// For any count: the binomial tree, whose node m holds the members [m, m + lowest bit of m), is the split at the largest power of two.
template <class T>
Result<void> MemberCommunicator::reduce_to_first(std::span<T> data) {
  for (std::uint32_t step = 1; step < size(); step *= 2) {
    if ((member() & step) != 0) {
      send(member() - step, std::as_bytes(data));
      return {};
    }
    if (member() + step >= size()) continue;
    const auto packet = port_->take(member() + step, data.size_bytes());
    if (!packet) return packet.error();
    add_above(data, elements<T>(*packet));
  }
  return {};
}

// The binomial tree downwards, numbered from the root.
Result<void> MemberCommunicator::send_down(std::span<std::byte> data, std::uint32_t root) {
  const std::uint32_t place = (member() + size() - root) % size();
  const auto member_at = [&](std::uint32_t at) { return (at + root) % size(); };
  std::uint32_t step = std::bit_ceil(size());
  if (place != 0) {
    step = place & (~place + 1);
    const auto packet = port_->take(member_at(place - step), data.size());
    if (!packet) return packet.error();
    std::ranges::copy(packet->payload(), data.begin());
  }
  for (step /= 2; step > 0; step /= 2) {
    if (place + step < size()) send(member_at(place + step), data);
  }
  return {};
}

Result<void> MemberCommunicator::gather_pieces(std::span<std::byte> data, std::size_t element_bytes) {
  const auto piece = [&](std::uint32_t of) {
    const auto [first, last] = piece_of(data.size() / element_bytes, of, size());
    return data.subspan(first * element_bytes, (last - first) * element_bytes);
  };
  for (std::uint32_t i = 1; i < size(); ++i) send((member() + i) % size(), piece(member()));
  for (std::uint32_t i = 1; i < size(); ++i) {
    const std::uint32_t from = (member() + i) % size();
    const auto packet = port_->take(from, piece(from).size());
    if (!packet) return packet.error();
    std::ranges::copy(packet->payload(), piece(from).begin());
  }
  return {};
}

Result<void> MemberCommunicator::all_gather(BytesView mine, std::span<std::byte> all) {
  TROUPE_CHECK(all.size() == mine.size() * size(), "all has room for every member's bytes");
  if (auto entered = port_->enter(Operation::all_gather, Element::byte, all.size()); !entered) return entered;
  std::ranges::copy(mine, all.subspan(member() * mine.size()).begin());
  if (auto gathered = gather_pieces(all, 1); !gathered) return gathered;
  return port_->leave();
}

Result<std::vector<Bytes>> MemberCommunicator::gather_variable(BytesView mine) {
  std::vector<Bytes> parts(size());
  parts[member()].assign(mine.begin(), mine.end());
  for (std::uint32_t i = 1; i < size(); ++i) send((member() + i) % size(), mine);
  for (std::uint32_t i = 1; i < size(); ++i) {
    const std::uint32_t from = (member() + i) % size();
    const auto packet = port_->take(from);
    if (!packet) return packet.error();
    parts[from].assign(packet->payload().begin(), packet->payload().end());
  }
  if (auto left = port_->leave(); !left) return left.error();
  return parts;
}

Result<std::vector<Bytes>> MemberCommunicator::all_gather_variable(BytesView mine) {
  if (auto entered = port_->enter(Operation::all_gather_variable, Element::byte, 0); !entered) return entered.error();
  return gather_variable(mine);
}

Result<void> MemberCommunicator::broadcast(std::span<std::byte> data, std::uint32_t root) {
  TROUPE_CHECK(root < size(), "the root is a member");
  if (auto entered = port_->enter(Operation::broadcast, Element::byte, data.size(), root); !entered) return entered;
  if (auto sent = send_down(data, root); !sent) return sent;
  return port_->leave();
}

Result<void> MemberCommunicator::exchange(std::uint32_t peer, BytesView out, std::span<std::byte> in) {
  TROUPE_CHECK(peer < size() && peer != member(), "a member exchanges with another one");
  if (auto entered = port_->enter_exchange(peer); !entered) return entered;
  send(peer, out);
  const auto packet = port_->take(peer, in.size());
  if (!packet) return packet.error();
  std::ranges::copy(packet->payload(), in.begin());
  return port_->leave();
}

// Dissemination: after the round of `step`, a member has heard, directly or not, of the 2 x step members before it.
Result<void> MemberCommunicator::barrier() {
  if (auto entered = port_->enter(Operation::barrier, Element::byte, 0); !entered) return entered;
  for (std::uint32_t step = 1; step < size(); step *= 2) {
    send((member() + step) % size(), {});
    const auto packet = port_->take((member() + size() - step) % size(), 0);
    if (!packet) return packet.error();
  }
  return port_->leave();
}

Result<std::unique_ptr<Communicator>> MemberCommunicator::split(std::uint32_t colour, std::uint32_t key) {
  struct Choice {
    std::uint32_t colour;
    std::uint32_t key;
  };
  if (auto entered = port_->enter(Operation::split, Element::byte, 0); !entered) return entered.error();
  const Choice own{colour, key};
  const auto gathered = gather_variable(std::as_bytes(std::span(&own, 1)));
  if (!gathered) return gathered.error();

  std::vector<std::pair<std::uint32_t, std::uint32_t>> chosen;  // key, member
  for (std::uint32_t other = 0; other < size(); ++other) {
    Choice choice{};
    TROUPE_CHECK((*gathered)[other].size() == sizeof choice, "every member of a split sends its choice");
    std::memcpy(&choice, (*gathered)[other].data(), sizeof choice);
    if (choice.colour == colour) chosen.emplace_back(choice.key, other);
  }
  std::ranges::sort(chosen);
  GroupSpec part;
  part.name = fmt::format("{}/{}.{}", port_->spec().name, ++splits_, colour);
  part.id = digest64(fmt::format("{:016x}/{}.{}", port_->spec().id, splits_, colour));
  part.deadline = port_->spec().deadline;
  part.family = port_->spec().family != 0 ? port_->spec().family : port_->spec().id;
  std::uint32_t member_there = 0;
  for (const auto& [order, other] : chosen) {
    if (other == member()) member_there = static_cast<std::uint32_t>(part.ranks.size());
    part.ranks.push_back(port_->spec().ranks[other]);
  }
  auto opened = fabric_.open(part, member_there);
  if (opened) static_cast<MemberCommunicator&>(**opened).keep_alive(kept_);
  return opened;
}

}  // namespace troupe::collectives
