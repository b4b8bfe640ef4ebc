#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <set>
#include <vector>

#include "actors/link.hpp"

namespace troupe::jobs::grpo {

/// The world's link, lent to one actor system after the other: a link can be started once only. stop() returns when every rank has stopped
/// and nothing that they sent is under way, so no message of one system reaches the next.
class SegmentLink final : public Link, private LinkSink {
 public:
  /// Starts the link, which must outlive this, and stops it at the end.
  explicit SegmentLink(Link& link);
  ~SegmentLink() override { link_.stop(); }

  Rank rank() const override { return link_.rank(); }
  std::uint32_t size() const override { return link_.size(); }
  void start(LinkSink& sink) override;
  void stop() override;
  Result<void> send(Rank to, WireEnvelope envelope) override { return link_.send(to, std::move(envelope)); }
  bool is_congested(Rank to) const override { return link_.is_congested(to); }

 private:
  void on_envelope(Rank from, WireEnvelope envelope) override;
  void on_relief(Rank peer) override;
  void on_peer_lost(Rank peer, const Error& reason) override;
  void on_peer_left(Rank peer, const Error& reason) override;

  Link& link_;
  std::mutex mutex_;
  std::condition_variable changed_;
  LinkSink* sink_ = nullptr;                ///< null between systems
  std::vector<std::uint32_t> ends_;         ///< by rank: how many systems of its it has ended
  std::uint32_t ended_ = 0;                 ///< here
  std::set<Rank> lost_;
  std::vector<std::pair<Rank, WireEnvelope>> early_;  ///< from ranks whose next system has begun before ours
};

}  // namespace troupe::jobs::grpo
