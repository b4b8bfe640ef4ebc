#pragma once

#include <cstdint>
#include <string>

#include "actors/base/bytes.hpp"
#include "actors/base/error.hpp"
#include "actors/envelope.hpp"

namespace troupe {

/// An envelope as it crosses ranks; `payload` is what the type's encode wrote.
struct WireEnvelope {
  EnvelopeKind kind = EnvelopeKind::tell;
  ActorId to{};
  ActorRef sender;
  Origin origin;
  std::uint64_t correlation = 0;
  TypeId type{};
  Bytes payload;
};

/// Who takes what comes from other ranks. Called from the link's threads; calls about one peer come one at a time, in the order sent.
class LinkSink {
 public:
  virtual void on_envelope(Rank from, WireEnvelope envelope) = 0;
  /// What was queued for a peer is below its limit again.
  virtual void on_relief(Rank peer) = 0;
  /// The peer is gone for good; what was queued for it is lost.
  virtual void on_peer_lost(Rank peer, const Error& reason) = 0;
  /// The peer has said goodbye: it takes and answers nothing more. All that it sent has come before.
  virtual void on_peer_left(Rank peer, const Error& reason) = 0;

 protected:
  ~LinkSink() = default;
};

/// The way to the other ranks of the job: in order and at most once per peer. Thread-safe.
class Link {
 public:
  virtual ~Link() = default;
  virtual Rank rank() const = 0;
  virtual std::uint32_t size() const = 0;

  /// Begins to deliver to `sink`, which must outlive stop().
  virtual void start(LinkSink& sink) = 0;
  /// Sends what is queued (at most some seconds), then closes; no call to the sink afterwards.
  virtual void stop() = 0;

  /// Queues and returns; never blocks. Errors: peer_lost; mailbox_full when the peer takes nothing and its queue stands at the hard limit.
  virtual Result<void> send(Rank to, WireEnvelope envelope) = 0;
  /// More is queued for the peer than its soft limit: senders should pause until on_relief.
  virtual bool is_congested(Rank to) const = 0;
};

}  // namespace troupe
