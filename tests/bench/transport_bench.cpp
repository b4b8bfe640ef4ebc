// mpirun -n 2 transport_bench: round trips and one-way streams between two ranks through AsioLink, beside a raw Asio ping-pong over a Unix
// socket and MPI's own, all in one run. Prints medians. The bound: the raw socket's round trip, for the same system calls.

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <boost/asio.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "actors/base/check.hpp"
#include "transport/world.hpp"

namespace {

using namespace troupe;
namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
using Socket = asio::local::stream_protocol::socket;

constexpr int kRepeats = 5;
constexpr Rank kZero{0};
constexpr Rank kOne{1};

std::unique_ptr<transport::World> world;
bool is_zero() { return world->rank() == kZero; }
void barrier() { TROUPE_CHECK(world->all_gather({}).has_value(), "both ranks run the same benchmarks"); }

struct Load {
  std::size_t bytes;
  std::size_t round_trips;
  std::size_t stream;
};
constexpr std::array<Load, 3> kLoads{Load{64, 5'000, 500'000}, Load{64 << 10, 1'000, 5'000}, Load{1 << 20, 100, 300}};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double seconds_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

WireEnvelope message(std::size_t bytes) {
  WireEnvelope envelope;
  envelope.payload.resize(bytes);
  return envelope;
}

// ---- Through the link. correlation: rounds still to go; 0 ends it.

class BenchSink : public LinkSink {
 public:
  enum class Role { ping, echo, count };
  void on_envelope(Rank from, WireEnvelope envelope) override {
    if (envelope.kind == EnvelopeKind::reply) return done();
    if (envelope.kind == EnvelopeKind::tell) {
      // A stream: the last one is answered.
      if (envelope.correlation == 0) answer(from, EnvelopeKind::reply);
      return;
    }
    if (is_zero() && --rounds_ == 0) return done();
    if (is_zero() && by_thread_) return done();
    TROUPE_CHECK(world->link()->send(from, std::move(envelope)).has_value(), "one message is under way");
  }
  void on_relief(Rank) override {
    const std::lock_guard lock(mutex_);
    relieved_.notify_all();
  }
  void on_peer_left(Rank, const Error&) override {}
  void on_peer_lost(Rank, const Error& reason) override { fmt::print(stderr, "{}\n", reason.detail); }

  void ping_pong(std::size_t bytes, std::size_t rounds) {
    rounds_ = rounds;
    by_thread_ = false;
    send_ask(bytes);
    wait();
  }
  void ping_pong_by_thread(std::size_t bytes, std::size_t rounds) {
    rounds_ = rounds + 1;
    by_thread_ = true;
    for (std::size_t i = 0; i < rounds; ++i) {
      send_ask(bytes);
      wait();
    }
  }
  void stream(std::size_t bytes, std::size_t count) {
    Link& link = *world->link();
    for (std::size_t left = count; left-- > 0;) {
      while (link.is_congested(kOne)) {
        std::unique_lock lock(mutex_);
        relieved_.wait_for(lock, std::chrono::milliseconds(1));
      }
      WireEnvelope envelope = message(bytes);
      envelope.correlation = left;
      TROUPE_CHECK(link.send(kOne, std::move(envelope)).has_value(), "the sender pauses when congested");
    }
    wait();
  }

 private:
  void send_ask(std::size_t bytes) {
    WireEnvelope envelope = message(bytes);
    envelope.kind = EnvelopeKind::ask;
    TROUPE_CHECK(world->link()->send(kOne, std::move(envelope)).has_value(), "one message is under way");
  }
  static void answer(Rank to, EnvelopeKind kind) {
    WireEnvelope envelope;
    envelope.kind = kind;
    TROUPE_CHECK(world->link()->send(to, std::move(envelope)).has_value(), "an answer fits");
  }
  void done() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return done_; });
    done_ = false;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable relieved_;
  bool done_ = false;
  bool by_thread_ = false;
  std::size_t rounds_ = 0;
};
BenchSink sink;

// ---- Raw Asio over a Unix socket: the same callbacks without frames.

asio::io_context raw_io{1};
Socket raw{raw_io};

void connect_raw() {
  const std::string path = fmt::format("/tmp/troupe-bench-{}", getpid());
  const asio::local::stream_protocol::endpoint endpoint(path);
  asio::local::stream_protocol::acceptor acceptor(raw_io);
  if (is_zero()) {
    acceptor.open();
    acceptor.bind(endpoint);
    acceptor.listen();
  }
  const auto paths = world->all_gather(std::as_bytes(std::span(path.data(), path.size())));
  const std::string zero(reinterpret_cast<const char*>((*paths)[0].data()), (*paths)[0].size());
  if (is_zero()) {
    acceptor.accept(raw);
    unlink(path.c_str());
  } else {
    raw.connect(asio::local::stream_protocol::endpoint(zero));
  }
  raw.set_option(asio::socket_base::send_buffer_size(1 << 20));
}

void raw_ping_pong(std::size_t bytes, std::size_t rounds) {
  std::vector<char> buffer(bytes);
  std::size_t left = rounds;
  std::function<void()> read_then_write;
  const auto write = [&](auto then) {
    asio::async_write(raw, asio::buffer(buffer), [then](boost::system::error_code, std::size_t) { then(); });
  };
  read_then_write = [&] {
    asio::async_read(raw, asio::buffer(buffer), [&](boost::system::error_code, std::size_t) {
      if (--left == 0 && is_zero()) return;
      const bool ends = left == 0;
      write([&, ends] {
        if (!ends) read_then_write();
      });
    });
  };
  if (is_zero()) {
    write([&] { read_then_write(); });
  } else {
    read_then_write();
  }
  raw_io.restart();
  raw_io.run();
}

void raw_stream(std::size_t bytes, std::size_t count) {
  char end = 0;
  if (is_zero()) {
    const std::vector<char> buffer(bytes);
    for (std::size_t i = 0; i < count; ++i) asio::write(raw, asio::buffer(buffer));
    asio::read(raw, asio::buffer(&end, 1));
  } else {
    std::vector<char> buffer(256 << 10);
    for (std::size_t got = 0; got < bytes * count;) got += raw.read_some(asio::buffer(buffer));
    asio::write(raw, asio::buffer(&end, 1));
  }
}

// ---- MPI

void mpi_ping_pong(std::size_t bytes, std::size_t rounds) {
  std::vector<char> buffer(bytes);
  const int count = static_cast<int>(bytes);
  for (std::size_t i = 0; i < rounds; ++i) {
    if (is_zero()) {
      MPI_Send(buffer.data(), count, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
      MPI_Recv(buffer.data(), count, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(buffer.data(), count, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(buffer.data(), count, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
  }
}

void mpi_stream(std::size_t bytes, std::size_t count) {
  std::vector<char> buffer(bytes);
  for (std::size_t i = 0; i < count; ++i) {
    if (is_zero()) {
      MPI_Send(buffer.data(), static_cast<int>(bytes), MPI_BYTE, 1, 2, MPI_COMM_WORLD);
    } else {
      MPI_Recv(buffer.data(), static_cast<int>(bytes), MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  mpi_ping_pong(1, 1);
}

struct Case {
  std::string name;
  std::function<void(std::size_t bytes, std::size_t count)> work;
  bool both_ranks;  ///< else rank 0 alone; rank 1's link answers
  bool is_stream;
};

double measure(const Case& one, const Load& load) {
  const std::size_t count = one.is_stream ? load.stream : load.round_trips;
  barrier();
  const double seconds = seconds_of([&] {
    if (is_zero() || one.both_ranks) one.work(load.bytes, count);
  });
  barrier();
  return seconds / static_cast<double>(count);
}

}  // namespace

int main() {
  auto joined = transport::World::join();
  if (!joined || (*joined)->size() != 2) {
    fmt::print(stderr, "{}\n", joined ? "usage: mpirun -n 2 transport_bench" : joined.error().detail);
    return 2;
  }
  world = std::move(*joined);
  world->link()->start(sink);
  connect_raw();

  const std::vector<Case> cases{
      {"link, round trip", [](auto bytes, auto count) { sink.ping_pong(bytes, count); }, false, false},
      {"link, round trip of another thread", [](auto bytes, auto count) { sink.ping_pong_by_thread(bytes, count); }, false, false},
      {"raw Asio, Unix socket, round trip", raw_ping_pong, true, false},
      {"MPI, round trip", mpi_ping_pong, true, false},
      {"link, stream", [](auto bytes, auto count) { sink.stream(bytes, count); }, false, true},
      {"raw Unix socket, stream, one write each", raw_stream, true, true},
      {"MPI, stream", mpi_stream, true, true},
  };
  if (is_zero()) fmt::print("{:<42}{:>10}{:>14}{:>16}{:>10}\n", "", "bytes", "µs", "messages/s", "GB/s");
  for (const Load& load : kLoads) {
    std::vector<std::vector<double>> seconds(cases.size());
    for (int repeat = 0; repeat < kRepeats; ++repeat) {
      for (std::size_t i = 0; i < cases.size(); ++i) seconds[i].push_back(measure(cases[i], load));
    }
    if (!is_zero()) continue;
    std::vector<double> medians;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const double each = medians.emplace_back(median(seconds[i]));
      fmt::print("{:<42}{:>10}{:>14.2f}{:>16.0f}{:>10.2f}\n", cases[i].name, load.bytes, each * 1e6, 1 / each,
                 static_cast<double>(load.bytes) / each / 1e9);
    }
    fmt::print("  round trip / raw socket {:.2f}, / MPI {:.2f}; stream / raw socket {:.2f}, / MPI {:.2f} (rates)\n",
               medians[0] / medians[2], medians[0] / medians[3], medians[5] / medians[4], medians[6] / medians[4]);
  }
  const bool orderly = world->leave();
  std::quick_exit(orderly ? 0 : 1);
}
