#pragma once

#include <compare>

#include <boost/serialization/nvp.hpp>

#include "actors/base/ids.hpp"

namespace troupe {

/// A rank that is not known here; the system then asks its directory.
inline constexpr Rank kRankUnknown{0xFFFFFFFF};

/// Addresses an actor by its logical name's digest, with the rank as a hint that belongs to neither content nor digest.
struct ActorRef {
  ActorId id{};
  Rank rank = kRankUnknown;

  explicit operator bool() const { return id != ActorId{}; }
  bool operator==(const ActorRef& other) const { return id == other.id; }
  auto operator<=>(const ActorRef& other) const { return id <=> other.id; }

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& boost::serialization::make_nvp("id", id);
    if (!archive.omits_placement()) archive& boost::serialization::make_nvp("rank", rank);
  }
};

/// Sender of what comes from outside the actors (the job's main, a test).
inline constexpr ActorId kOutside{};

}  // namespace troupe
