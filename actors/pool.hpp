#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "actors/base/check.hpp"
#include "actors/base/digest.hpp"
#include "actors/base/fields.hpp"
#include "actors/context.hpp"

namespace troupe {

/// Actors that do the same work, and who is next. A value in the state of the actor that uses it. Precondition of all picks: not empty.
class Pool {
 public:
  Pool() = default;
  explicit Pool(std::vector<ActorRef> members) : members_(std::move(members)), open_(members_.size()) {}

  const std::vector<ActorRef>& members() const { return members_; }

  ActorRef round_robin() {
    TROUPE_CHECK(!members_.empty(), "a pool has members");
    return members_[next_++ % members_.size()];
  }

  /// The same member for the same key, as long as the members are the same (highest random weight).
  ActorRef sticky(std::uint64_t key) const {
    TROUPE_CHECK(!members_.empty(), "a pool has members");
    const auto weight = [key](ActorRef member) {
      const std::uint64_t pair[2] = {key, static_cast<std::uint64_t>(member.id)};
      return digest64(std::as_bytes(std::span(pair)));
    };
    return *std::max_element(members_.begin(), members_.end(), [&](ActorRef a, ActorRef b) { return weight(a) < weight(b); });
  }

  /// The member with the fewest open requests of this pool's owner, the first of equals: begin when it is sent, end when it is answered.
  ActorRef begin_least_loaded() {
    TROUPE_CHECK(!members_.empty(), "a pool has members");
    const auto least = std::min_element(open_.begin(), open_.end());
    ++*least;
    return members_[static_cast<std::size_t>(least - open_.begin())];
  }
  void end(ActorRef member) {
    const auto at = std::find(members_.begin(), members_.end(), member);
    if (at != members_.end()) --open_[static_cast<std::size_t>(at - members_.begin())];
  }

  template <class M>
  void broadcast(Context& context, const M& message) const {
    for (const ActorRef member : members_) context.tell<M>(member, message);
  }
  /// One ask a member, all under way: co_await each.
  template <class M>
  std::vector<Ask<reply_of<M>>> ask_all(Context& context, const M& message) const {
    std::vector<Ask<reply_of<M>>> asks;
    for (const ActorRef member : members_) asks.push_back(context.ask<M>(member, message));
    return asks;
  }

  TROUPE_FIELDS(members_, open_, next_)

 private:
  std::vector<ActorRef> members_;
  std::vector<std::uint64_t> open_;
  std::uint64_t next_ = 0;
};

}  // namespace troupe
