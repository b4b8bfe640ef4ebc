#include "jobs/launch/stop_signals.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <utility>

#include "actors/base/check.hpp"

namespace troupe::jobs {
namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set, signal);
  return set;
}

}  // namespace

StopSignals::StopSignals() : ended_(eventfd(0, EFD_CLOEXEC)) {
  TROUPE_CHECK(ended_ >= 0, "an eventfd can be made at the start");
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  thread_ = std::thread([this] { watch(); });
}

StopSignals::~StopSignals() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(ended_, &one, sizeof one);
  thread_.join();
  close(ended_);
}

std::optional<int> StopSignals::received() const {
  const int signal = received_.load();
  return signal == 0 ? std::nullopt : std::optional(signal);
}

std::optional<int> StopSignals::exit_code() const {
  const auto signal = received();
  return signal ? std::optional(128 + *signal) : std::nullopt;
}

void StopSignals::on_stop(std::function<void(int)> callback) {
  const std::lock_guard lock(mutex_);
  callback_ = std::move(callback);
  if (const int signal = received_.load(); signal != 0 && callback_) std::exchange(callback_, {})(signal);
}

void StopSignals::watch() {
  const sigset_t set = stop_signals();
  const int signals = signalfd(-1, &set, SFD_CLOEXEC);
  TROUPE_CHECK(signals >= 0, "a signalfd can be made at the start");
  std::array<pollfd, 2> waits{{{signals, POLLIN, 0}, {ended_, POLLIN, 0}}};
  while (poll(waits.data(), waits.size(), -1) >= 0 || errno == EINTR) {
    if ((waits[1].revents & POLLIN) != 0) break;
    signalfd_siginfo info{};
    if ((waits[0].revents & POLLIN) == 0 || read(signals, &info, sizeof info) != sizeof info) continue;
    const int signal = static_cast<int>(info.ssi_signo) == SIGINT ? SIGINT : SIGTERM;
    const std::lock_guard lock(mutex_);
    if (received_.load() == SIGINT && signal == SIGINT) _exit(130);
    if (received_.load() != 0) continue;
    received_ = signal;
    if (callback_) std::exchange(callback_, {})(signal);
  }
  close(signals);
}

}  // namespace troupe::jobs
