#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/link.hpp"
#include "transport/address.hpp"
#include "transport/frame.hpp"
#include "transport/handshake.hpp"

namespace troupe::transport {

struct AsioLinkOptions {
  std::size_t soft_bytes_max = std::size_t{8} << 20;  ///< queued for one peer before is_congested; relief at half
  std::size_t hard_bytes_max = std::size_t{256}
                               << 20;  ///< queued for one peer before send refuses; one message into an empty queue always passes
  std::uint32_t payload_bytes_max = kPayloadBytesMax;
  std::chrono::milliseconds heartbeat{1'000};
  std::chrono::milliseconds silence{10'000};  ///< a peer that says nothing for so long is lost; counted in heartbeats
  std::chrono::milliseconds handshake_deadline{10'000};
  std::chrono::milliseconds connect_deadline{30'000};  ///< from the link's start to a peer's link
  std::chrono::milliseconds stop_deadline{5'000};
  /// Hears of every lost peer before the sink does, even before start(). Called from the link's thread.
  std::function<void(Rank, const Error&)> on_lost;
};

/// Links to the other ranks over Unix sockets within a machine and TCP between machines, one connection for each pair.
///
/// It connects as soon as it exists (the higher rank dials the lower one), and delivers from start() on. One thread of its own reads, and
/// calls the sink; a single message is written by the thread that sends it, a burst by the link's thread, many frames in one call.
/// A connection that breaks is not built up again: delivery is at most once, and the peer is lost. Listening ends once every peer is
/// linked or lost. A sender that saw is_congested and then waits must look again after it has begun to wait.
class AsioLink final : public Link {
 public:
  /// `addresses`: every rank's, by rank (the own one is ignored).
  AsioLink(std::unique_ptr<Listeners> listeners, const Membership& own, std::vector<LinkAddress> addresses, AsioLinkOptions options = {});
  ~AsioLink() override;
  AsioLink(const AsioLink&) = delete;
  AsioLink& operator=(const AsioLink&) = delete;

  /// Waits until every peer is linked. Errors: those of the first peer that cannot be, at the latest after the connect deadline.
  Result<void> await_peers();

  Rank rank() const override;
  std::uint32_t size() const override;
  void start(LinkSink& sink) override;
  void stop() override;
  /// Further errors: bad_input for a payload above the limit.
  Result<void> send(Rank to, WireEnvelope envelope) override;
  bool is_congested(Rank to) const override;

  std::size_t queued_bytes(Rank to) const;
  /// For people: "rank 3 (node7) over tcp 10.0.0.7:40123".
  std::string describe(Rank peer) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace troupe::transport
