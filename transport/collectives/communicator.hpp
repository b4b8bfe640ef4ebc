#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "actors/base/bytes.hpp"
#include "actors/base/error.hpp"

namespace troupe::collectives {

/// One member's end of a group: the collectives of the numerics contract. Members are numbered 0 to size - 1 and may live in any
/// process, several in one; nothing that a collective computes depends on where.
///
/// Every member makes the same calls in the same order (exchange aside, which concerns two), each from one thread at a time. A call
/// blocks until this member's part is done. Calls carry a fingerprint (number, operation, type, bytes): a member that does something
/// else is collective_mismatch, one that does not come within the group's deadline deadline_exceeded, a lost rank peer_lost; each
/// names members and ranks. After an error the group has failed for all its members and every later call returns the first error.
///
/// Sums are the one tree over members, (sum of the first p) + (sum of the rest), p the largest power of two below the count.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual std::uint32_t member() const = 0;
  virtual std::uint32_t size() const = 0;

  /// data[i] becomes the tree's sum of all members' data[i], in every member. Equal sizes.
  virtual Result<void> all_reduce_sum(std::span<float> data) = 0;
  virtual Result<void> all_reduce_sum(std::span<double> data) = 0;

  /// piece becomes this member's piece_of(data.size(), member(), size()) of what all_reduce_sum would give: the same bits with
  /// half the traffic. data is scratch afterwards. Precondition: piece has that size and does not overlap data.
  virtual Result<void> reduce_scatter_sum(std::span<float> data, std::span<float> piece) = 0;
  virtual Result<void> reduce_scatter_sum(std::span<double> data, std::span<double> piece) = 0;

  /// all becomes the members' bytes, one after the other. Precondition: equal sizes, all.size() == size() * mine.size().
  virtual Result<void> all_gather(BytesView mine, std::span<std::byte> all) = 0;
  /// The members' bytes, of any sizes, by member.
  virtual Result<std::vector<Bytes>> all_gather_variable(BytesView mine) = 0;

  /// data becomes the root's. Equal sizes.
  virtual Result<void> broadcast(std::span<std::byte> data, std::uint32_t root) = 0;

  /// Between two members: sends out and receives in, whose size must be that of the peer's out. Either may be empty.
  virtual Result<void> exchange(std::uint32_t peer, BytesView out, std::span<std::byte> in) = 0;

  /// Returns when every member has called it.
  virtual Result<void> barrier() = 0;

  /// The group of the members that gave the same colour, numbered by (key, member). Both groups stay usable, in one order by all.
  virtual Result<std::unique_ptr<Communicator>> split(std::uint32_t colour, std::uint32_t key) = 0;
};

/// The elements [first, last) of `count` that are piece `member` of `size`: the cuts are floor(member * count / size).
inline std::pair<std::size_t, std::size_t> piece_of(std::size_t count, std::uint32_t member, std::uint32_t size) {
  const auto cut = [&](std::size_t at) { return count / size * at + count % size * at / size; };
  return {cut(member), cut(member + 1)};
}

/// A group of members that all live in this process, for tests and for a job without ranks: each to be used by a thread of its own.
/// A group of one needs no other thread.
std::vector<std::unique_ptr<Communicator>> local_communicators(std::uint32_t size);

}  // namespace troupe::collectives
