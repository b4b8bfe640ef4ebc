#pragma once

// Several links in one process, over real sockets, and sinks that can be waited on.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "transport/asio_link.hpp"

namespace troupe::testing {

using transport::AsioLink;
using transport::AsioLinkOptions;
using transport::Listeners;
using transport::ListenOptions;

inline Bytes text_bytes(std::string_view text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

inline WireEnvelope numbered(std::uint64_t number, std::size_t payload_bytes = 8) {
  WireEnvelope envelope;
  envelope.kind = EnvelopeKind::ask;
  envelope.to = ActorId{number * 3};
  envelope.sender = {ActorId{number + 1}, Rank{7}};
  envelope.origin = {ActorId{number + 1}, number};
  envelope.correlation = ~number;
  envelope.type = TypeId{number ^ 0xABCDU};
  envelope.payload.assign(payload_bytes, static_cast<std::byte>(number));
  return envelope;
}

inline bool equal(const WireEnvelope& a, const WireEnvelope& b) {
  return a.kind == b.kind && a.to == b.to && a.sender.id == b.sender.id && a.sender.rank == b.sender.rank && a.origin == b.origin &&
         a.correlation == b.correlation && a.type == b.type && a.payload == b.payload;
}

/// Keeps what comes; wait_* return false when it does not come within a generous while.
class KeepingSink : public LinkSink {
 public:
  void on_envelope(Rank from, WireEnvelope envelope) override {
    if (Link* link = answer_through) {
      if (!link->send(from, std::move(envelope))) ADD_FAILURE() << "an echo was refused";
      return;
    }
    const std::lock_guard lock(mutex_);
    received_[from].push_back(std::move(envelope));
    changed_.notify_all();
  }
  void on_relief(Rank) override {
    const std::lock_guard lock(mutex_);
    ++reliefs_;
    changed_.notify_all();
  }
  void on_peer_left(Rank peer, const Error& reason) override {
    const std::lock_guard lock(mutex_);
    left_[peer].push_back(reason);
    changed_.notify_all();
  }
  void on_peer_lost(Rank peer, const Error& reason) override {
    const std::lock_guard lock(mutex_);
    lost_[peer].push_back(reason);
    changed_.notify_all();
  }

  bool wait_for(Rank from, std::size_t count) {
    return wait([&] { return received_[from].size() >= count; });
  }
  bool wait_lost(Rank peer) {
    return wait([&] { return !lost_[peer].empty(); });
  }
  bool wait_left(Rank peer) {
    return wait([&] { return left_[peer].size() == 1; });
  }
  bool wait_relief() {
    return wait([&] { return reliefs_ > 0; });
  }
  std::vector<WireEnvelope> received(Rank from) {
    const std::lock_guard lock(mutex_);
    return received_[from];
  }
  std::vector<Error> lost(Rank peer) {
    const std::lock_guard lock(mutex_);
    return lost_[peer];
  }
  std::size_t lost_count() {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const auto& [peer, reasons] : lost_) count += reasons.size();
    return count;
  }

  WireEnvelope take(Rank from) {
    const std::lock_guard lock(mutex_);
    WireEnvelope first = std::move(received_[from].front());
    received_[from].erase(received_[from].begin());
    return first;
  }
  void forget() {
    const std::lock_guard lock(mutex_);
    received_.clear();
  }

  std::atomic<Link*> answer_through = nullptr;  ///< an echo instead

 private:
  template <class Condition>
  bool wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(40), condition);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Rank, std::vector<WireEnvelope>> received_;
  std::map<Rank, std::vector<Error>> lost_, left_;
  int reliefs_ = 0;
};

/// A job of `size` ranks whose links are made one by one, so that a test may leave some out or replace them by strangers.
class LinkWorld {
 public:
  enum class Over { unix_socket, tcp };

  explicit LinkWorld(std::uint32_t size, Over over = Over::unix_socket, AsioLinkOptions options = {})
      : size_(size), options_(std::move(options)) {
    for (std::uint32_t i = 0; i < size; ++i) {
      ListenOptions listen;
      listen.unix_socket = over == Over::unix_socket;
      listen.tcp = over == Over::tcp;
      auto opened = Listeners::open(listen);
      if (!opened) ADD_FAILURE() << opened.error().detail;
      addresses_.push_back((*opened)->address());
      listeners_.push_back(std::move(*opened));
    }
    links.resize(size);
    sinks = std::vector<KeepingSink>(size);
  }
  ~LinkWorld() {
    // All at once, as the ranks of a job do: a stop waits for the goodbyes of the others.
    std::vector<std::thread> stops;
    for (auto& link : links) {
      if (link) stops.emplace_back([&link] { link->stop(); });
    }
    for (std::thread& thread : stops) thread.join();
  }

  transport::Membership membership(std::uint32_t rank) const {
    transport::Membership membership{.rank = Rank{rank}, .size = size_, .job = {}, .secret = {}, .build = 17};
    membership.secret.fill(std::byte{0x5A});
    return membership;
  }
  const std::vector<transport::LinkAddress>& addresses() const { return addresses_; }

  AsioLink& open(std::uint32_t rank, const transport::Membership& membership) {
    links[rank] = std::make_unique<AsioLink>(std::move(listeners_[rank]), membership, addresses_, options_);
    return *links[rank];
  }
  AsioLink& open(std::uint32_t rank) { return open(rank, membership(rank)); }
  void start(std::uint32_t rank) { links[rank]->start(sinks[rank]); }
  void open_and_start_all() {
    for (std::uint32_t i = 0; i < size_; ++i) open(i);
    for (std::uint32_t i = 0; i < size_; ++i) {
      const auto linked = links[i]->await_peers();
      ASSERT_TRUE(linked) << linked.error().detail;
      start(i);
    }
  }

  std::vector<std::unique_ptr<AsioLink>> links;
  std::vector<KeepingSink> sinks;

 private:
  std::uint32_t size_;
  AsioLinkOptions options_;
  std::vector<transport::LinkAddress> addresses_;
  std::vector<std::unique_ptr<Listeners>> listeners_;
};

}  // namespace troupe::testing
