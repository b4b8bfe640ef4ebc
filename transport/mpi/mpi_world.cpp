#include "transport/mpi/mpi_world.hpp"

#include <fmt/format.h>
#include <immintrin.h>
#include <mpi.h>

#include <array>
#include <chrono>
#include <climits>
#include <numeric>
#include <thread>

namespace troupe::transport {
namespace {

std::mutex entered_mutex;
std::weak_ptr<MpiWorld> entered;

// Rounding to nearest, every exception masked, denormals kept: what a fresh thread has and what the contract asks for.
Result<void> check_mxcsr() {
  const unsigned mxcsr = _mm_getcsr();
  if ((mxcsr & 0xFFC0U) == 0x1F80U) return {};
  return Error{ErrorCode::unsupported,
               fmt::format("MXCSR after MPI_Init: want 0x1f80, got {:#x}; a library that MPI loads changed rounding or denormals", mxcsr)};
}

using Clock = std::chrono::steady_clock;

// Polls `request` with back-off, giving the guard up in between.
Result<void> finish(MpiWorld& world, MPI_Request& request, std::string_view call, Clock::time_point deadline) {
  auto pause = std::chrono::microseconds(5);
  for (;;) {
    int done = 0;
    {
      const auto guard = world.guard();
      if (auto result = mpi_result(MPI_Test(&request, &done, MPI_STATUS_IGNORE), call); !result) return result;
    }
    if (done != 0) return {};
    if (world.has_lost_rank()) return Error{ErrorCode::peer_lost, fmt::format("{}: a rank of {} is lost (waiting on rank {})", call, world.size(), world.rank())};
    if (Clock::now() > deadline) {
      return Error{ErrorCode::deadline_exceeded, fmt::format("{}: a rank of {} did not take part (waiting on rank {})", call, world.size(), world.rank())};
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(1000));
  }
}

}  // namespace

Result<void> mpi_result(int code, std::string_view call) {
  if (code == MPI_SUCCESS) return {};
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return Error{ErrorCode::internal, fmt::format("{}: {}", call, std::string_view(text.data(), static_cast<std::size_t>(length)))};
}

Result<std::shared_ptr<MpiWorld>> MpiWorld::enter() {
  const std::lock_guard lock(entered_mutex);
  if (auto world = entered.lock()) return world;
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (initialised != 0) return Error{ErrorCode::unsupported, "MPI: want to enter it once in a process, got a second entry after it was left or begun elsewhere"};

  int granted = MPI_THREAD_SINGLE;
  if (auto result = mpi_result(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &granted), "MPI_Init_thread"); !result) return result.error();
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  std::shared_ptr<MpiWorld> world(new MpiWorld);
  MPI_Comm_rank(MPI_COMM_WORLD, &world->rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &world->size_);
  world->multithreaded_ = granted == MPI_THREAD_MULTIPLE;
  if (granted < MPI_THREAD_SERIALIZED) {
    return Error{ErrorCode::unsupported, fmt::format("MPI: want thread level MPI_THREAD_SERIALIZED ({}) or more, got {}", MPI_THREAD_SERIALIZED, granted)};
  }
  if (auto result = check_mxcsr(); !result) return result.error();
  entered = world;
  return world;
}

MpiWorld::~MpiWorld() { leave(); }

std::unique_lock<std::mutex> MpiWorld::guard() {
  return multithreaded_ ? std::unique_lock<std::mutex>() : std::unique_lock<std::mutex>(mutex_);
}

Result<std::vector<Bytes>> MpiWorld::all_gather(BytesView mine, int deadline_s) {
  if (mine.size() > INT_MAX) return Error{ErrorCode::bad_input, fmt::format("all_gather: want at most {} bytes, got {}", INT_MAX, mine.size())};
  const auto deadline = Clock::now() + std::chrono::seconds(deadline_s);
  const auto ranks = static_cast<std::size_t>(size_);

  MPI_Request request = MPI_REQUEST_NULL;
  const int own = static_cast<int>(mine.size());
  std::vector<int> counts(ranks);
  {
    const auto held = guard();
    auto result = mpi_result(MPI_Iallgather(&own, 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD, &request), "MPI_Iallgather");
    if (!result) return result.error();
  }
  if (auto result = finish(*this, request, "MPI_Iallgather", deadline); !result) return result.error();

  std::vector<int> starts(ranks);
  std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), 0);
  Bytes all(static_cast<std::size_t>(starts.back()) + static_cast<std::size_t>(counts.back()));
  {
    const auto held = guard();
    auto result = mpi_result(MPI_Iallgatherv(mine.data(), own, MPI_BYTE, all.data(), counts.data(), starts.data(), MPI_BYTE, MPI_COMM_WORLD, &request),
                             "MPI_Iallgatherv");
    if (!result) return result.error();
  }
  if (auto result = finish(*this, request, "MPI_Iallgatherv", deadline); !result) return result.error();

  std::vector<Bytes> parts(ranks);
  for (std::size_t i = 0; i < ranks; ++i) {
    parts[i].assign(all.begin() + starts[i], all.begin() + starts[i] + counts[i]);
  }
  return parts;
}

void MpiWorld::note_lost_rank() { lost_ = true; }

bool MpiWorld::leave() {
  const std::lock_guard lock(state_mutex_);
  if (lost_) return false;
  if (!left_) {
    left_ = true;
    int finalised = 0;
    MPI_Finalized(&finalised);
    if (finalised == 0) MPI_Finalize();
  }
  return true;
}

}  // namespace troupe::transport
