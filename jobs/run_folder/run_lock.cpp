#include "jobs/run_folder/run_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <sstream>
#include <thread>
#include <utility>

#include "jobs/report/wall_clock.hpp"

namespace troupe::jobs {
namespace {

constexpr double kAliveS = 15;
constexpr auto kBeat = std::chrono::seconds(3);

Error failed(const std::filesystem::path& file) { return {ErrorCode::io, fmt::format("{}: could not be locked: {}", file.string(), std::strerror(errno))}; }

std::string read_all(int fd) {
  std::array<char, 1024> block{};
  const ssize_t count = pread(fd, block.data(), block.size(), 0);
  return {block.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
}

// Field 22 of /proc/PID/stat; the name, field 2, is in brackets and may hold anything.
std::uint64_t start_ticks(std::int64_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  const std::size_t bracket = stat.rfind(')');
  if (bracket == std::string::npos) return 0;
  std::istringstream fields(stat.substr(bracket + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  return std::strtoull(field.c_str(), nullptr, 10);
}

struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

Error held(const std::filesystem::path& file, const std::optional<LockHolder>& holder) {
  const std::string who = holder ? fmt::format("process {} on host {}", holder->process, holder->host) : "another process";
  return {ErrorCode::locked, fmt::format("{}: {} writes this run; wait for it or stop it", file.parent_path().string(), who)};
}

bool is_same_file(int fd, const std::filesystem::path& file) {
  struct stat opened {}, named {};
  return fstat(fd, &opened) == 0 && stat(file.c_str(), &named) == 0 && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

double beat_age_s(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return 0;
  return unix_seconds() - (static_cast<double>(status.st_mtim.tv_sec) + static_cast<double>(status.st_mtim.tv_nsec) * 1e-9);
}

}  // namespace

std::string LockHolder::text() const { return fmt::format("troupe-run-lock host {} process {} start {}\n", host, process, started_ticks); }

std::optional<LockHolder> LockHolder::parse(std::string_view text) {
  std::istringstream words{std::string(text)};
  std::string magic, host_word, process_word, start_word;
  LockHolder holder;
  words >> magic >> host_word >> holder.host >> process_word >> holder.process >> start_word >> holder.started_ticks;
  if (!words || magic != "troupe-run-lock") return std::nullopt;
  return holder;
}

LockHolder LockHolder::of_this_process() {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return {host.data(), getpid(), start_ticks(getpid())};
}

/// Touches the file until told to end.
struct RunLock::Heart {
  explicit Heart(int fd) : thread([this, fd] {
    std::unique_lock lock(mutex);
    while (!changed.wait_for(lock, kBeat, [this] { return is_ended; })) futimens(fd, nullptr);
  }) {}
  ~Heart() {
    {
      const std::lock_guard lock(mutex);
      is_ended = true;
    }
    changed.notify_all();
    thread.join();
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool is_ended = false;
  std::thread thread;
};

Result<RunLock> RunLock::take(const std::filesystem::path& file) {
  while (true) {
    const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) return failed(file);
    struct flock lock = whole_file();
    const bool is_locked = fcntl(fd, F_OFD_SETLK, &lock) == 0;
    const int code = errno;
    const auto holder = LockHolder::parse(read_all(fd));
    if (!is_locked && (code == EAGAIN || code == EACCES)) return close(fd), held(file, holder);
    // No locks here: the heartbeat has to say it.
    if (!is_locked && holder && beat_age_s(fd) < kAliveS) return close(fd), held(file, holder);
    if (!is_same_file(fd, file)) {  // its holder removed it between our two calls
      close(fd);
      continue;
    }
    const std::string text = LockHolder::of_this_process().text();
    if (ftruncate(fd, 0) != 0 || pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) return close(fd), failed(file);
    return RunLock(file, fd, holder);
  }
}

RunLock::RunLock(std::filesystem::path file, int fd, std::optional<LockHolder> taken_from)
    : file_(std::move(file)), fd_(fd), taken_from_(std::move(taken_from)), heart_(std::make_unique<Heart>(fd)) {}

RunLock::RunLock(RunLock&& other) noexcept
    : file_(std::move(other.file_)), fd_(std::exchange(other.fd_, -1)), taken_from_(std::move(other.taken_from_)), heart_(std::move(other.heart_)) {}

RunLock::~RunLock() {
  if (fd_ < 0) return;
  heart_.reset();
  std::error_code code;
  std::filesystem::remove(file_, code);  // while it is held
  close(fd_);
}

}  // namespace troupe::jobs
