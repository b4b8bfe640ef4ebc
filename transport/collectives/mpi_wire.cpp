#include "transport/collectives/mpi_wire.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "actors/base/check.hpp"

namespace troupe::collectives {
namespace {

using Clock = std::chrono::steady_clock;

// A packet is one message with kWhole; one that is too large for MPI is its header with kWhole, then its payload in parts with kPart.
// MPI keeps the order of messages of one rank and tag, so parts match the receives that their header's arrival posts.
constexpr int kWhole = 1;
constexpr int kPart = 2;

struct Sending {
  Packet packet;
  std::vector<MPI_Request> requests;
  std::shared_ptr<std::atomic<std::uint32_t>> unsent;
};

struct Receiving {
  Packet packet;
  std::vector<MPI_Request> requests;
  bool is_complete = false;  ///< the requests cover the payload
};

struct Traffic {
  std::list<Sending> sending;
  std::map<int, std::deque<Receiving>> receiving;  ///< by rank, in the order of arrival
};

class MpiWire final : public Wire {
 public:
  MpiWire(std::shared_ptr<transport::MpiWorld> world, MPI_Comm communicator, std::uint32_t ranks_on_host, std::size_t message_bytes_max)
      : world_(std::move(world)), communicator_(communicator), ranks_on_host_(ranks_on_host), message_bytes_max_(message_bytes_max) {}
  ~MpiWire() override;

  Rank rank() const override { return Rank{static_cast<std::uint32_t>(world_->rank())}; }
  std::uint32_t ranks_on_host() const override { return ranks_on_host_; }
  void post(Rank to, Packet packet, std::shared_ptr<std::atomic<std::uint32_t>> unsent) override;
  bool poll(const std::function<void(Rank, Packet)>& arrived) override;

 private:
  bool test_all(std::vector<MPI_Request>& requests);
  bool finish_sends();
  bool match_arrivals();
  bool advance(int from, Receiving& receiving);
  template <class Start>
  void start_parts(std::span<std::byte> payload, std::vector<MPI_Request>& requests, Start start) const;
  void check(int code, const char* call) const;

  std::shared_ptr<transport::MpiWorld> world_;
  MPI_Comm communicator_;
  std::uint32_t ranks_on_host_;
  std::size_t message_bytes_max_;
  std::mutex mutex_;
  std::unique_ptr<Traffic> traffic_ = std::make_unique<Traffic>();
};

MpiWire::~MpiWire() {
  // Notices may still be leaving; they are small and take no time unless their rank is gone.
  const auto until = Clock::now() + std::chrono::seconds(1);
  while (!traffic_->sending.empty() && Clock::now() < until) {
    {
      const auto guard = world_->guard();
      finish_sends();
    }
    if (!traffic_->sending.empty()) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  bool receives = false;
  for (const auto& [from, queue] : traffic_->receiving) receives = receives || !queue.empty();
  if (receives || !traffic_->sending.empty()) (void)traffic_.release();
}

void MpiWire::check(int code, const char* call) const {
  // With a communicator of our own and buffers of our own, what MPI refuses here is a call made wrongly; a lost peer is no error to it.
  TROUPE_CHECK(code == MPI_SUCCESS, call);
}

template <class Start>
void MpiWire::start_parts(std::span<std::byte> payload, std::vector<MPI_Request>& requests, Start start) const {
  while (!payload.empty()) {
    const auto part = payload.first(std::min(payload.size(), message_bytes_max_));
    start(part.data(), static_cast<int>(part.size()), &requests.emplace_back(MPI_REQUEST_NULL));
    payload = payload.subspan(part.size());
  }
}

void MpiWire::post(Rank to, Packet packet, std::shared_ptr<std::atomic<std::uint32_t>> unsent) {
  const std::lock_guard lock(mutex_);
  const auto guard = world_->guard();
  const int rank = static_cast<int>(index(to));
  Sending& sending = traffic_->sending.emplace_back(Sending{std::move(packet), {}, std::move(unsent)});
  const auto block = sending.packet.block();
  const bool is_cut = block.size() > message_bytes_max_;
  const auto whole = is_cut ? block.first(sizeof(PacketHeader)) : block;
  check(MPI_Isend(whole.data(), static_cast<int>(whole.size()), MPI_BYTE, rank, kWhole, communicator_, &sending.requests.emplace_back(MPI_REQUEST_NULL)),
        "MPI_Isend");
  if (is_cut) {
    start_parts(sending.packet.payload(), sending.requests, [&](std::byte* data, int count, MPI_Request* request) {
      check(MPI_Isend(data, count, MPI_BYTE, rank, kPart, communicator_, request), "MPI_Isend");
    });
  }
  // Small ones have left already.
  if (test_all(sending.requests)) {
    sending.unsent->fetch_sub(1);
    traffic_->sending.pop_back();
  }
}

bool MpiWire::test_all(std::vector<MPI_Request>& requests) {
  int done = 0;
  check(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE), "MPI_Testall");
  return done != 0;
}

bool MpiWire::finish_sends() {
  const auto finished = std::erase_if(traffic_->sending, [this](Sending& sending) {
    if (!test_all(sending.requests)) return false;
    sending.unsent->fetch_sub(1);
    return true;
  });
  return finished > 0;
}

bool MpiWire::match_arrivals() {
  bool matched = false;
  for (;;) {
    int is_there = 0;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status;
    check(MPI_Improbe(MPI_ANY_SOURCE, kWhole, communicator_, &is_there, &message, &status), "MPI_Improbe");
    if (is_there == 0) return matched;
    matched = true;
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    TROUPE_CHECK(bytes >= static_cast<int>(sizeof(PacketHeader)), "every message on the wire's communicator begins with a header");
    Receiving& receiving = traffic_->receiving[status.MPI_SOURCE].emplace_back();
    receiving.packet = Packet::of_size(static_cast<std::size_t>(bytes));
    check(MPI_Imrecv(receiving.packet.block().data(), bytes, MPI_BYTE, &message, &receiving.requests.emplace_back(MPI_REQUEST_NULL)), "MPI_Imrecv");
  }
}

// True when the packet is whole.
bool MpiWire::advance(int from, Receiving& receiving) {
  if (!test_all(receiving.requests)) return false;
  if (receiving.is_complete) return true;
  const PacketHeader header = receiving.packet.header();
  const std::size_t got = receiving.packet.payload().size();
  TROUPE_CHECK(header.magic == PacketHeader::kMagic && (got == header.payload_bytes || got == 0), "a header says what follows it");
  receiving.is_complete = true;
  if (got == header.payload_bytes) return true;
  receiving.packet = Packet(header);
  receiving.requests.clear();
  start_parts(receiving.packet.payload(), receiving.requests, [&](std::byte* data, int count, MPI_Request* request) {
    check(MPI_Irecv(data, count, MPI_BYTE, from, kPart, communicator_, request), "MPI_Irecv");
  });
  return test_all(receiving.requests);
}

bool MpiWire::poll(const std::function<void(Rank, Packet)>& arrived) {
  const std::lock_guard lock(mutex_);
  const auto guard = world_->guard();
  bool moved = finish_sends();
  moved = match_arrivals() || moved;
  for (auto& [from, queue] : traffic_->receiving) {
    while (!queue.empty() && advance(from, queue.front())) {
      arrived(Rank{static_cast<std::uint32_t>(from)}, std::move(queue.front().packet));
      queue.pop_front();
      moved = true;
    }
  }
  return moved;
}

// The host's name, cut to what gethostname gives.
std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

Result<std::shared_ptr<Wire>> open_mpi_wire(std::shared_ptr<transport::MpiWorld> world, const MpiWireOptions& options) {
  const std::string host = host_name();
  const auto hosts = world->all_gather(std::as_bytes(std::span(host)), options.deadline_s);
  if (!hosts) return hosts.error();
  const auto here = std::ranges::count((*hosts), (*hosts)[static_cast<std::size_t>(world->rank())]);

  MPI_Comm communicator = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  {
    const auto guard = world->guard();
    auto started = transport::mpi_result(MPI_Comm_idup(MPI_COMM_WORLD, &communicator, &request), "MPI_Comm_idup");
    if (!started) return started.error();
  }
  const auto until = Clock::now() + std::chrono::seconds(options.deadline_s);
  for (int done = 0; done == 0;) {
    {
      const auto guard = world->guard();
      auto tested = transport::mpi_result(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Comm_idup");
      if (!tested) return tested.error();
    }
    if (done != 0) break;
    if (Clock::now() > until) return Error{ErrorCode::deadline_exceeded, fmt::format("MPI_Comm_idup: a rank of {} did not take part", world->size())};
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return std::shared_ptr<Wire>(std::make_shared<MpiWire>(std::move(world), communicator, static_cast<std::uint32_t>(here), options.message_bytes_max));
}

}  // namespace troupe::collectives
