#include "transport/asio_link.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/socket.h>

#include <atomic>
#include <boost/asio.hpp>
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>

#include "actors/base/check.hpp"
#include "transport/frame_reader.hpp"
#include "transport/output_queue.hpp"

// Invariants:
// 1. Only the link's thread ("the I/O thread") touches asio objects, reads, changes a peer's state and calls the sink.
// 2. A peer's queue, flags and connection pointer are guarded by its mutex; no other lock is taken and the sink is not called under it.
// 3. Whoever sets `writing` is the only one that consumes from the queue; it drops the mutex around the system call (pieces never move).
// 4. A queue that is not empty has a writer, a posted flush, a wait for writability, or a dirty mark that the I/O thread is about to visit.
// 5. A connection's socket is closed when the last of its users lets go of it, so no thread writes to a reused descriptor.
namespace troupe::transport {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using Socket = asio::generic::stream_protocol::socket;
using Endpoint = asio::generic::stream_protocol::endpoint;

constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);
// A message that follows another one so closely belongs to a burst, which the I/O thread writes in large pieces.
constexpr auto kBurstGap = std::chrono::microseconds(10);
constexpr std::size_t kWriteOwnBytes = 256 << 10;
constexpr std::size_t kStrangersMax = 64;
constexpr std::chrono::milliseconds kConnectPatience{3'000};
constexpr int kReadsInARow = 16;

enum class State { connecting, linked, left, lost };

struct Connection {
  Connection(Socket taken, std::string name, std::uint32_t payload_bytes_max)
      : socket(std::move(taken)), via(std::move(name)), reader(payload_bytes_max) {}
  Socket socket;
  std::string via;
  FrameReader reader;
  std::uint64_t bytes_in = 0;
};
using ConnectionPtr = std::shared_ptr<Connection>;

struct Peer {
  Rank rank{};
  LinkAddress address;
  bool is_local = false;

  mutable std::mutex mutex;
  State state = State::connecting;
  OutputQueue queue;
  ConnectionPtr connection;
  bool writing = false;
  bool blocked = false;  ///< the socket takes nothing; the I/O thread waits for it
  bool flush_posted = false;
  bool relief_due = false;
  bool wrote = false;  ///< since the last tick
  int write_errno = 0;
  Clock::time_point last_send;
  Error reason;
  std::atomic<bool> congested = false;

  // The I/O thread's own.
  bool dirty = false;
  bool heard = false;
  std::int64_t silent_ticks = 0;
};

// Closes a socket when its time is up and nobody called it off.
class Deadline {
 public:
  Deadline(asio::io_context& io, std::shared_ptr<Socket> socket, std::chrono::milliseconds after) : timer_(io, after) {
    timer_.async_wait([socket](error_code error) {
      error_code ignored;
      if (!error) socket->close(ignored);
    });
  }
  ~Deadline() { timer_.cancel(); }
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

 private:
  asio::steady_timer timer_;
};

struct Candidate {
  Endpoint endpoint;
  std::string via;
};

std::vector<Candidate> candidates_of(const Peer& peer) {
  std::vector<Candidate> candidates;
  const LinkAddress& address = peer.address;
  if (peer.is_local && !address.unix_path.empty()) {
    candidates.push_back({asio::local::stream_protocol::endpoint(address.unix_path), "unix " + address.unix_path});
  }
  if (address.tcp_port == 0) return candidates;
  for (const std::string& text : address.ips) {
    error_code error;
    const auto ip = asio::ip::make_address(text, error);
    // Another host's loopback is our own.
    if (error || (ip.is_loopback() && !peer.is_local)) continue;
    candidates.push_back({asio::ip::tcp::endpoint(ip, address.tcp_port), fmt::format("tcp {} port {}", text, address.tcp_port)});
  }
  return candidates;
}

std::string via_of(const asio::ip::tcp::socket& socket) {
  error_code error;
  const auto remote = socket.remote_endpoint(error);
  return error ? "tcp" : fmt::format("tcp {} port {}", remote.address().to_string(), remote.port());
}
std::string via_of(const asio::local::stream_protocol::socket&) { return "unix"; }

void tune(Socket& socket) {
  error_code ignored;
  // A child of this process must not hold its connections open after its death.
  fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
  socket.non_blocking(true, ignored);
  if (socket.local_endpoint(ignored).protocol().family() == AF_UNIX) {
    socket.set_option(asio::socket_base::send_buffer_size(1 << 20), ignored);
  } else {
    socket.set_option(asio::ip::tcp::no_delay(true), ignored);
  }
}

}  // namespace

struct AsioLink::Impl {
  Impl(std::unique_ptr<Listeners> listeners, const Membership& membership, std::vector<LinkAddress> addresses,
       AsioLinkOptions link_options);

  // Any thread.
  Result<void> send(Peer& peer, WireEnvelope envelope);
  void write_queue(std::unique_lock<std::mutex>& lock, Peer& peer);
  bool is_io_thread() const { return std::this_thread::get_id() == io_thread.load(std::memory_order_relaxed); }
  Peer& peer_of(Rank to) const;
  std::string name_of(const Peer& peer) const { return fmt::format("rank {} ({})", index(peer.rank), peer.address.host); }

  // The I/O thread.
  template <class Acceptor>
  asio::awaitable<void> accept_all(Acceptor& acceptor);
  asio::awaitable<void> greet(std::shared_ptr<Socket> socket, std::string via);
  asio::awaitable<void> dial(Peer& peer);
  asio::awaitable<Result<void>> dial_at(Peer& peer, const Candidate& candidate);
  asio::awaitable<Result<void>> shake(Socket& socket, Handshake& handshake);
  void admit(const std::shared_ptr<Socket>& stranger);
  void adopt(Peer& peer, Socket socket, std::string via);
  void wait_readable(Peer& peer, ConnectionPtr connection);
  void read(Peer& peer, const ConnectionPtr& connection);
  Result<bool> take_frames(Peer& peer, Connection& connection);
  void flush(Peer& peer);
  void flush_dirty();
  void wait_writable(Peer& peer, ConnectionPtr connection);
  void say(Peer& peer, FrameKind kind);
  void close(Peer& peer, State state, Error reason);
  void lose(Peer& peer, std::string_view what);
  void tick();
  void begin(LinkSink* sink_or_none);
  void settle();
  void finish();

  asio::io_context io{1};
  Membership own;
  AsioLinkOptions options;
  std::vector<std::unique_ptr<Peer>> peers;  ///< by rank; null for the own one
  std::unique_ptr<Listeners> listeners;
  asio::local::stream_protocol::acceptor unix_acceptor{io};
  asio::ip::tcp::acceptor tcp_acceptor{io};
  asio::steady_timer ticker{io};
  asio::steady_timer stop_timer{io};
  Clock::time_point began = Clock::now();
  std::deque<std::weak_ptr<Socket>> strangers;
  std::vector<Peer*> dirty;
  LinkSink* sink = nullptr;
  bool started = false;   ///< frames are read
  bool stopping = false;  ///< frames are read and dropped; the sink is not called

  std::mutex settled_mutex;
  std::condition_variable settled;
  std::size_t connecting = 0;  ///< guarded by settled_mutex, as is the next
  Error first_lost{ErrorCode::ok, ""};

  std::atomic<bool> stop_called = false;
  std::atomic<std::thread::id> io_thread{};  ///< only ever compared with the reader's own id
  std::thread thread;
};

AsioLink::Impl::Impl(std::unique_ptr<Listeners> opened, const Membership& membership, std::vector<LinkAddress> addresses,
                     AsioLinkOptions link_options)
    : own(membership), options(std::move(link_options)), listeners(std::move(opened)) {
  TROUPE_CHECK(addresses.size() == own.size && index(own.rank) < own.size, "there is one address for each rank");
  const LinkAddress own_address = addresses[index(own.rank)];
  peers.resize(own.size);
  for (std::uint32_t i = 0; i < own.size; ++i) {
    if (i == index(own.rank)) continue;
    peers[i] = std::make_unique<Peer>();
    peers[i]->rank = Rank{i};
    peers[i]->address = std::move(addresses[i]);
    peers[i]->is_local = peers[i]->address.machine == own_address.machine;
    sort_by_nearness(peers[i]->address.ips, own_address.ips);
  }
  connecting = own.size - 1;
  if (const int fd = listeners->release_unix(); fd >= 0) unix_acceptor.assign(asio::local::stream_protocol(), fd);
  if (const int fd = listeners->release_tcp(); fd >= 0)
    tcp_acceptor.assign(listeners->is_tcp_v6() ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), fd);

  asio::post(io, [this] {
    if (unix_acceptor.is_open()) asio::co_spawn(io, accept_all(unix_acceptor), asio::detached);
    if (tcp_acceptor.is_open()) asio::co_spawn(io, accept_all(tcp_acceptor), asio::detached);
    for (std::uint32_t i = 0; i < index(own.rank); ++i) asio::co_spawn(io, dial(*peers[i]), asio::detached);
    tick();
    settle();
  });
  // The job's signals go to its own threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread = std::thread([this] {
    pthread_setname_np(pthread_self(), "troupe-link");
    io_thread.store(std::this_thread::get_id(), std::memory_order_relaxed);
    const auto work = asio::make_work_guard(io);
    io.run();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Peer& AsioLink::Impl::peer_of(Rank to) const {
  TROUPE_CHECK(index(to) < own.size && to != own.rank, "a link carries messages to the job's other ranks only");
  return *peers[index(to)];
}

// ---- Sending

Result<void> AsioLink::Impl::send(Peer& peer, WireEnvelope envelope) {
  const std::size_t bytes = kFrameHeaderBytes + envelope.payload.size();
  if (envelope.payload.size() > options.payload_bytes_max) {
    return Error{ErrorCode::bad_input, fmt::format("message to {}: want at most {} bytes, got {}", name_of(peer), options.payload_bytes_max,
                                                   envelope.payload.size())};
  }
  const FrameHeaderBytes header = encode_header(header_of(envelope, !peer.is_local));
  const bool on_io = is_io_thread();

  std::unique_lock lock(peer.mutex);
  if (peer.state == State::lost || peer.state == State::left) return peer.reason;
  const std::size_t queued = peer.queue.bytes();
  if (queued > 0 && queued + bytes > options.hard_bytes_max) {
    return Error{ErrorCode::mailbox_full, fmt::format("message to {}: {} bytes wait already and the peer takes none (limit {})",
                                                      name_of(peer), queued, options.hard_bytes_max)};
  }
  peer.queue.push(header, std::move(envelope.payload));
  if (queued + bytes > options.soft_bytes_max) peer.congested.store(true, std::memory_order_relaxed);
  if (peer.state != State::linked || peer.writing || peer.blocked) return {};
  if (peer.flush_posted && queued + bytes <= kWriteOwnBytes) return {};
  if (on_io) {
    // Everything that the sink answers to one read leaves in one write.
    if (!peer.dirty) dirty.push_back(&peer);
    peer.dirty = true;
    return {};
  }
  const auto now = Clock::now();
  const bool in_burst = now - std::exchange(peer.last_send, now) < kBurstGap;
  if (!in_burst || queued + bytes > kWriteOwnBytes) {
    write_queue(lock, peer);
  }
  if (!peer.queue.is_empty() || peer.relief_due) {
    if (!std::exchange(peer.flush_posted, true)) {
      lock.unlock();
      asio::post(io, [this, &peer] { flush(peer); });
    }
  }
  return {};
}

// Writes until nothing is queued or the socket takes no more; a thread other than the I/O thread writes once only.
// Precondition: linked, neither writing nor blocked.
void AsioLink::Impl::write_queue(std::unique_lock<std::mutex>& lock, Peer& peer) {
  const bool on_io = is_io_thread();
  const ConnectionPtr connection = peer.connection;
  std::array<iovec, 64> pieces;
  peer.writing = true;
  peer.wrote = true;
  while (!peer.queue.is_empty() && peer.state == State::linked) {
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = peer.queue.gather(pieces);
    lock.unlock();
    const ssize_t written = sendmsg(connection->socket.native_handle(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    const int failed = written < 0 ? errno : 0;
    lock.lock();
    if (failed == EINTR) continue;
    if (failed != 0) {
      peer.blocked = true;
      // What came in before the break is still to be read, a goodbye perhaps: the reading side concludes.
      if (failed != EAGAIN && failed != EWOULDBLOCK) {
        peer.write_errno = failed;
        ::shutdown(connection->socket.native_handle(), SHUT_RDWR);
      }
      break;
    }
    peer.queue.consume(static_cast<std::size_t>(written));
    if (!on_io) break;
  }
  peer.writing = false;
  if (peer.state != State::linked || peer.write_errno != 0) peer.queue.clear();
  if (peer.queue.bytes() < options.soft_bytes_max / 2 + 1 && peer.congested.exchange(false, std::memory_order_relaxed))
    peer.relief_due = true;
}

void AsioLink::Impl::flush(Peer& peer) {
  std::unique_lock lock(peer.mutex);
  peer.flush_posted = false;
  if (peer.state == State::linked && !peer.writing && !peer.blocked) write_queue(lock, peer);
  const bool relief = std::exchange(peer.relief_due, false);
  ConnectionPtr waits = peer.blocked && peer.write_errno == 0 && !peer.writing && peer.state == State::linked ? peer.connection : nullptr;
  lock.unlock();
  if (waits) wait_writable(peer, std::move(waits));
  if (relief && sink != nullptr) {
    sink->on_relief(peer.rank);
    flush_dirty();
  }
}

void AsioLink::Impl::flush_dirty() {
  // A sink's answer to relief may mark further peers.
  while (!dirty.empty()) {
    Peer* peer = dirty.back();
    dirty.pop_back();
    peer->dirty = false;
    flush(*peer);
  }
}

void AsioLink::Impl::wait_writable(Peer& peer, ConnectionPtr connection) {
  Socket& socket = connection->socket;
  socket.async_wait(Socket::wait_write, [this, &peer, connection = std::move(connection)](error_code error) {
    if (error) return;
    {
      const std::lock_guard lock(peer.mutex);
      peer.blocked = false;
    }
    flush(peer);
  });
}

void AsioLink::Impl::say(Peer& peer, FrameKind kind) {
  FrameHeader header;
  header.frame = kind;
  {
    const std::lock_guard lock(peer.mutex);
    peer.queue.push(encode_header(header), {});
  }
  flush(peer);
}

// ---- Connecting

template <class Acceptor>
asio::awaitable<void> AsioLink::Impl::accept_all(Acceptor& acceptor) {
  while (acceptor.is_open()) {
    auto [error, socket] = co_await acceptor.async_accept(kAsTuple);
    if (error == asio::error::operation_aborted || !acceptor.is_open()) co_return;
    if (error) {
      // Out of descriptors, mostly: those that wait in the backlog lose nothing.
      asio::steady_timer pause(io, std::chrono::milliseconds(50));
      co_await pause.async_wait(kAsTuple);
      continue;
    }
    std::string via = via_of(socket);
    auto stranger = std::make_shared<Socket>(std::move(socket));
    admit(stranger);
    asio::co_spawn(io, greet(std::move(stranger), std::move(via)), asio::detached);
  }
}

// Strangers cannot crowd out the job's ranks: the oldest that is still unproven goes.
void AsioLink::Impl::admit(const std::shared_ptr<Socket>& stranger) {
  std::erase_if(strangers, [](const std::weak_ptr<Socket>& other) { return other.expired(); });
  if (strangers.size() >= kStrangersMax) {
    error_code ignored;
    if (const auto oldest = strangers.front().lock()) oldest->close(ignored);
    strangers.pop_front();
  }
  strangers.push_back(stranger);
}

asio::awaitable<Result<void>> AsioLink::Impl::shake(Socket& socket, Handshake& handshake) {
  for (;;) {
    const Bytes output = handshake.take_output();
    auto [write_error, written] = co_await asio::async_write(socket, asio::buffer(output), kAsTuple);
    if (write_error) co_return Error{ErrorCode::io, "handshake: " + write_error.message()};
    if (handshake.wanted_bytes() == 0) co_return Result<void>{};
    Bytes input(handshake.wanted_bytes());
    auto [read_error, got] = co_await asio::async_read(socket, asio::buffer(input), kAsTuple);
    if (read_error)
      co_return Error{ErrorCode::io, fmt::format("handshake: want {} bytes, got {}: {}", input.size(), got, read_error.message())};
    Result<void> fed = handshake.feed(input);
    if (!fed) {
      const Bytes refusal = handshake.take_output();
      co_await asio::async_write(socket, asio::buffer(refusal), kAsTuple);
      co_return fed;
    }
  }
}

asio::awaitable<void> AsioLink::Impl::greet(std::shared_ptr<Socket> socket, std::string via) {
  const Deadline deadline(io, socket, options.handshake_deadline);
  Nonce nonce;
  if (!fill_random(nonce)) co_return;
  Handshake handshake = Handshake::accepting(own, nonce);
  Result<void> shaken = co_await shake(*socket, handshake);
  // Whoever fails is closed, and nothing else happens: a stranger must not be able to disturb the job.
  if (!shaken || !socket->is_open()) co_return;
  adopt(peer_of(handshake.peer()), std::move(*socket), std::move(via));
}

asio::awaitable<Result<void>> AsioLink::Impl::dial_at(Peer& peer, const Candidate& candidate) {
  auto socket = std::make_shared<Socket>(io);
  std::optional<Deadline> deadline;
  // An address that nothing answers at must not keep us from the next one.
  deadline.emplace(io, socket, std::min(options.handshake_deadline, kConnectPatience));
  auto [error] = co_await socket->async_connect(candidate.endpoint, kAsTuple);
  if (error || !socket->is_open()) {
    co_return Error{ErrorCode::io, error == asio::error::operation_aborted || !error ? "no answer" : error.message()};
  }
  deadline.emplace(io, socket, options.handshake_deadline);
  Nonce nonce;
  if (Result<void> filled = fill_random(nonce); !filled) co_return filled;
  Handshake handshake = Handshake::connecting(own, peer.rank, nonce);
  Result<void> shaken = co_await shake(*socket, handshake);
  if (!shaken) co_return shaken;
  if (!socket->is_open()) co_return Error{ErrorCode::io, "handshake: too late"};
  adopt(peer, std::move(*socket), candidate.via);
  co_return Result<void>{};
}

asio::awaitable<void> AsioLink::Impl::dial(Peer& peer) {
  const std::vector<Candidate> candidates = candidates_of(peer);
  std::string last = "it has no address that can be reached from here";
  auto pause = std::chrono::milliseconds(10);
  while (peer.state == State::connecting) {
    for (const Candidate& candidate : candidates) {
      Result<void> linked = co_await dial_at(peer, candidate);
      if (linked) co_return;
      last = fmt::format("{}: {}", candidate.via, linked.error().detail);
      if (linked.error().code == ErrorCode::unsupported) co_return lose(peer, last);
    }
    if (candidates.empty() || Clock::now() - began > options.connect_deadline) co_return lose(peer, "it cannot be reached, " + last);
    asio::steady_timer timer(io, pause);
    co_await timer.async_wait(kAsTuple);
    pause = std::min(pause * 2, std::chrono::milliseconds(1'000));
  }
}

void AsioLink::Impl::adopt(Peer& peer, Socket socket, std::string via) {
  // Read without the mutex: only this thread changes it. A second connection of the same rank is dropped.
  if (peer.state != State::connecting) return;
  tune(socket);
  auto connection = std::make_shared<Connection>(std::move(socket), std::move(via), options.payload_bytes_max);
  {
    const std::lock_guard lock(peer.mutex);
    peer.state = State::linked;
    peer.connection = connection;
  }
  if (stopping) say(peer, FrameKind::goodbye);
  flush(peer);
  if (started) wait_readable(peer, connection);
  {
    const std::lock_guard lock(settled_mutex);
    --connecting;
  }
  settle();
}

// ---- Receiving

void AsioLink::Impl::wait_readable(Peer& peer, ConnectionPtr connection) {
  Socket& socket = connection->socket;
  socket.async_wait(Socket::wait_read, [this, &peer, connection = std::move(connection)](error_code error) {
    if (!error) read(peer, connection);
  });
}

void AsioLink::Impl::read(Peer& peer, const ConnectionPtr& connection) {
  for (int i = 0; i < kReadsInARow; ++i) {
    const auto places = connection->reader.space();
    const std::array<iovec, 2> pieces{iovec{places[0].data(), places[0].size()}, iovec{places[1].data(), places[1].size()}};
    const ssize_t got = readv(connection->socket.native_handle(), pieces.data(), 2);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (got <= 0) {
      const std::string what = got == 0 ? "it closed the connection without a goodbye" : std::strerror(errno);
      return lose(peer, connection->reader.is_between_frames() ? what : what + ", within a frame");
    }
    peer.heard = true;
    connection->bytes_in += static_cast<std::size_t>(got);
    connection->reader.commit(static_cast<std::size_t>(got));
    Result<bool> goes_on = take_frames(peer, *connection);
    flush_dirty();
    if (!goes_on) return lose(peer, goes_on.error().detail);
    if (!*goes_on || peer.state != State::linked) return;
    if (static_cast<std::size_t>(got) < places[0].size() + places[1].size()) break;
  }
  wait_readable(peer, connection);
}

// Hands over what is whole. False after a goodbye.
Result<bool> AsioLink::Impl::take_frames(Peer& peer, Connection& connection) {
  Frame frame;
  for (;;) {
    Result<bool> taken = connection.reader.next(frame);
    if (!taken) return taken;
    if (!*taken) return true;
    if (frame.kind == FrameKind::goodbye) {
      close(peer, State::left, {ErrorCode::peer_lost, name_of(peer) + " has left the job in good order"});
      return false;
    }
    if (frame.kind == FrameKind::envelope && sink != nullptr) sink->on_envelope(peer.rank, std::move(frame.envelope));
  }
}

// ---- Ends

void AsioLink::Impl::lose(Peer& peer, std::string_view what) {
  if (stopping) return close(peer, State::left, {ErrorCode::peer_lost, "the link is stopped"});
  std::string seen;
  if (peer.connection) {
    seen = fmt::format(" ({}, {} bytes received", peer.connection->via, peer.connection->bytes_in);
    if (peer.write_errno != 0) seen += fmt::format("; writing: {}", std::strerror(peer.write_errno));
    seen += ")";
  }
  close(peer, State::lost, {ErrorCode::peer_lost, fmt::format("{} is lost: {}{}", name_of(peer), what, seen)});
}

void AsioLink::Impl::close(Peer& peer, State state, Error reason) {
  ConnectionPtr connection;
  bool was_connecting = false;
  bool was_congested = false;
  {
    const std::lock_guard lock(peer.mutex);
    if (peer.state == State::lost || peer.state == State::left) return;
    was_connecting = peer.state == State::connecting;
    peer.state = state;
    peer.reason = reason;
    connection = std::move(peer.connection);
    if (!peer.writing) peer.queue.clear();
    was_congested = peer.congested.exchange(false, std::memory_order_relaxed);
  }
  if (connection) {
    error_code ignored;
    connection->socket.shutdown(Socket::shutdown_both, ignored);
    connection->socket.cancel(ignored);
  }
  {
    const std::lock_guard lock(settled_mutex);
    if (was_connecting) --connecting;
    if (first_lost.code == ErrorCode::ok && state == State::lost) first_lost = reason;
  }
  if (state == State::lost) {
    if (options.on_lost) options.on_lost(peer.rank, reason);
    if (sink != nullptr) sink->on_peer_lost(peer.rank, reason);
  } else if (sink != nullptr) {
    // Who waits for room is to try again, and hear that the peer has left.
    if (was_congested) sink->on_relief(peer.rank);
    sink->on_peer_left(peer.rank, reason);
  }
  flush_dirty();
  settle();
}

// Wakes those who wait for the peers, ends listening when nobody is expected any more, and the link when it stops and everyone is gone.
void AsioLink::Impl::settle() {
  bool all_settled = false;
  {
    const std::lock_guard lock(settled_mutex);
    all_settled = connecting == 0;
  }
  settled.notify_all();
  if (all_settled && listeners) {
    error_code ignored;
    unix_acceptor.close(ignored);
    tcp_acceptor.close(ignored);
    listeners.reset();
  }
  if (!stopping) return;
  for (const auto& peer : peers) {
    if (peer && (peer->state == State::connecting || peer->state == State::linked)) return;
  }
  finish();
}

void AsioLink::Impl::tick() {
  const std::int64_t silent_ticks_max = std::max<std::int64_t>(1, options.silence / options.heartbeat);
  const bool connect_time_is_up = Clock::now() - began > options.connect_deadline;
  for (const auto& peer : peers) {
    if (!peer) continue;
    if (peer->state == State::connecting && connect_time_is_up && peer->rank > own.rank) {
      lose(*peer, fmt::format("it did not connect within {} ms", options.connect_deadline.count()));
    }
    if (peer->state != State::linked) continue;
    bool idle = false;
    {
      const std::lock_guard lock(peer->mutex);
      idle = !std::exchange(peer->wrote, false) && peer->queue.is_empty();
    }
    if (idle) say(*peer, FrameKind::heartbeat);
    if (!started) continue;
    // Ticks are counted, not time: if this process itself was stopped, the peers are not to blame.
    peer->silent_ticks = std::exchange(peer->heard, false) ? 0 : peer->silent_ticks + 1;
    if (peer->silent_ticks > silent_ticks_max) lose(*peer, fmt::format("no sign of life for {} ms", options.silence.count()));
  }
  ticker.expires_after(options.heartbeat);
  ticker.async_wait([this](error_code error) {
    if (!error) tick();
  });
}

// Frames are read from now on, for the sink or (none) to be dropped.
void AsioLink::Impl::begin(LinkSink* sink_or_none) {
  sink = sink_or_none;
  const bool was_started = std::exchange(started, true);
  for (const auto& peer : peers) {
    if (!peer || was_started) continue;
    if (peer->state == State::linked) wait_readable(*peer, peer->connection);
    if (peer->state == State::lost && sink != nullptr) sink->on_peer_lost(peer->rank, peer->reason);
  }
  flush_dirty();
}

void AsioLink::Impl::finish() {
  error_code ignored;
  for (const auto& peer : peers) {
    if (peer && (peer->state == State::connecting || peer->state == State::linked)) {
      const std::lock_guard lock(peer->mutex);
      peer->state = State::left;
      peer->reason = {ErrorCode::peer_lost, "the link is stopped"};
      if (peer->connection) peer->connection->socket.shutdown(Socket::shutdown_both, ignored);
      peer->connection.reset();
      if (!peer->writing) peer->queue.clear();
    }
  }
  unix_acceptor.close(ignored);
  tcp_acceptor.close(ignored);
  io.stop();
}

// ---- The public face

AsioLink::AsioLink(std::unique_ptr<Listeners> listeners, const Membership& own, std::vector<LinkAddress> addresses, AsioLinkOptions options)
    : impl_(std::make_unique<Impl>(std::move(listeners), own, std::move(addresses), std::move(options))) {}

AsioLink::~AsioLink() { stop(); }

Result<void> AsioLink::await_peers() {
  std::unique_lock lock(impl_->settled_mutex);
  impl_->settled.wait(lock, [this] { return impl_->connecting == 0 || impl_->first_lost.code != ErrorCode::ok; });
  if (impl_->first_lost.code != ErrorCode::ok) return impl_->first_lost;
  return {};
}

Rank AsioLink::rank() const { return impl_->own.rank; }
std::uint32_t AsioLink::size() const { return impl_->own.size; }

void AsioLink::start(LinkSink& sink) {
  asio::post(impl_->io, [this, &sink] {
    if (!impl_->stopping) impl_->begin(&sink);
  });
}

void AsioLink::stop() {
  TROUPE_CHECK(!impl_->is_io_thread(), "a sink cannot stop the link that calls it");
  if (impl_->stop_called.exchange(true)) return;
  asio::post(impl_->io, [impl = impl_.get()] {
    impl->stopping = true;
    impl->begin(nullptr);
    impl->stop_timer.expires_after(impl->options.stop_deadline);
    impl->stop_timer.async_wait([impl](error_code error) {
      if (!error) impl->finish();
    });
    for (const auto& peer : impl->peers) {
      if (peer && peer->state == State::linked) impl->say(*peer, FrameKind::goodbye);
    }
    impl->settle();
  });
  impl_->thread.join();
}

Result<void> AsioLink::send(Rank to, WireEnvelope envelope) { return impl_->send(impl_->peer_of(to), std::move(envelope)); }
bool AsioLink::is_congested(Rank to) const { return impl_->peer_of(to).congested.load(std::memory_order_relaxed); }

std::size_t AsioLink::queued_bytes(Rank to) const {
  const Peer& peer = impl_->peer_of(to);
  const std::lock_guard lock(peer.mutex);
  return peer.queue.bytes();
}

std::string AsioLink::describe(Rank to) const {
  const Peer& peer = impl_->peer_of(to);
  const std::lock_guard lock(peer.mutex);
  if (peer.state == State::connecting) return impl_->name_of(peer) + ", not linked yet";
  if (!peer.connection) return peer.reason.detail;
  return fmt::format("{} over {}", impl_->name_of(peer), peer.connection->via);
}

}  // namespace troupe::transport
