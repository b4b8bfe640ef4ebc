#include "jobs/grpo/segment_link.hpp"

namespace troupe::jobs::grpo {
namespace {

/// No message type has this id: it says that a rank's system has ended.
constexpr TypeId kEnd{0};

}  // namespace

SegmentLink::SegmentLink(Link& link) : link_(link), ends_(link.size()) { link_.start(*this); }

void SegmentLink::start(LinkSink& sink) {
  const std::lock_guard lock(mutex_);
  sink_ = &sink;
  for (auto& [from, envelope] : std::exchange(early_, {})) sink.on_envelope(from, std::move(envelope));
}

void SegmentLink::stop() {
  for (std::uint32_t peer = 0; peer < size(); ++peer) {
    if (Rank{peer} != rank()) (void)link_.send(Rank{peer}, {.kind = EnvelopeKind::system, .type = kEnd});
  }
  std::unique_lock lock(mutex_);
  ++ended_;
  changed_.wait(lock, [this] {
    for (std::uint32_t peer = 0; peer < size(); ++peer) {
      if (Rank{peer} != rank() && ends_[peer] < ended_ && !lost_.contains(Rank{peer})) return false;
    }
    return true;
  });
  sink_ = nullptr;
}

void SegmentLink::on_envelope(Rank from, WireEnvelope envelope) {
  const std::lock_guard lock(mutex_);
  if (envelope.type == kEnd) {
    ++ends_[index(from)];
    changed_.notify_all();
  } else if (ends_[index(from)] > ended_ || sink_ == nullptr) {
    early_.emplace_back(from, std::move(envelope));
  } else {
    sink_->on_envelope(from, std::move(envelope));
  }
}

void SegmentLink::on_relief(Rank peer) {
  const std::lock_guard lock(mutex_);
  if (sink_ != nullptr) sink_->on_relief(peer);
}

void SegmentLink::on_peer_lost(Rank peer, const Error& reason) {
  const std::lock_guard lock(mutex_);
  lost_.insert(peer);
  changed_.notify_all();
  if (sink_ != nullptr) sink_->on_peer_lost(peer, reason);
}

void SegmentLink::on_peer_left(Rank peer, const Error& reason) {
  const std::lock_guard lock(mutex_);
  lost_.insert(peer);
  changed_.notify_all();
  if (sink_ != nullptr) sink_->on_peer_left(peer, reason);
}

}  // namespace troupe::jobs::grpo
