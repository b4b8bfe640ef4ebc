#include "jobs/launch/launcher.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "jobs/launch/launch_folder.hpp"
#include "jobs/report/progress.hpp"
#include "transport/mpi/launch.hpp"

namespace troupe::jobs {
namespace {

namespace fs = std::filesystem;

constexpr int kPollMs = 50;

Error failed(std::string_view what) { return {ErrorCode::io, fmt::format("{}: {}", what, std::strerror(errno))}; }

sigset_t launcher_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

// Between fork and exec only what is safe after fork: everything is prepared before.
[[noreturn]] void become_mpirun(char* const* arguments, const sigset_t& old_mask, pid_t launcher) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != launcher) _exit(127);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  sigprocmask(SIG_SETMASK, &old_mask, nullptr);
  execvp(arguments[0], arguments);
  _exit(127);
}

// Whether the process was started below this launch: its id may have been given to another since.
bool belongs(pid_t process, const fs::path& folder) {
  std::ifstream file(fmt::format("/proc/{}/environ", process), std::ios::binary);
  const std::string environment{std::istreambuf_iterator<char>(file), {}};
  return environment.find(fmt::format("{}={}", LaunchFolder::kVariable, folder.string())) != std::string::npos;
}

/// One run of mpirun and its ranks.
class Launch {
 public:
  Launch(LaunchFolder folder, std::uint32_t ranks) : folder_(std::move(folder)), ranks_(ranks) {}
  ~Launch() {
    kill_all();
    if (signals_ >= 0) close(signals_);
    if (progress_fd_ >= 0) close(progress_fd_);
    if (is_masked_) sigprocmask(SIG_SETMASK, &old_mask_, nullptr);
  }

  Result<void> start(const std::vector<std::string>& troupe_arguments);
  Result<int> wait();

 private:
  void take_signals();
  void pass_on();
  void read_progress();
  bool reap();
  void kill_all();
  int verdict() const;

  LaunchFolder folder_;
  std::uint32_t ranks_;
  Progress progress_ = Progress::for_people();
  std::string unread_;
  int progress_fd_ = -1;
  int signals_ = -1;
  sigset_t old_mask_{};
  bool is_masked_ = false;
  pid_t mpirun_ = 0;
  int status_ = 0;
  int stop_ = 0;              ///< the signal to pass on
  std::set<pid_t> told_;      ///< ranks that got it
};

Result<void> Launch::start(const std::vector<std::string>& troupe_arguments) {
  // Open for both, so that it never reads as ended and a rank can open it at any time.
  progress_fd_ = open(folder_.fifo().c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (progress_fd_ < 0) return failed(folder_.fifo().string());
  std::error_code code;
  const fs::path self = fs::read_symlink("/proc/self/exe", code);
  if (code) return Error{ErrorCode::io, "/proc/self/exe: " + code.message()};
  std::vector<std::string> words{"mpirun", "--quiet", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", std::to_string(ranks_), self.string()};
  words.insert(words.end(), troupe_arguments.begin(), troupe_arguments.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  setenv(LaunchFolder::kVariable, folder_.path().c_str(), 1);
  const sigset_t set = launcher_signals();
  sigprocmask(SIG_BLOCK, &set, &old_mask_);
  is_masked_ = true;
  signals_ = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (signals_ < 0) return failed("signalfd");
  const pid_t launcher = getpid();
  mpirun_ = fork();
  if (mpirun_ < 0) return mpirun_ = 0, failed("fork");
  if (mpirun_ == 0) become_mpirun(arguments.data(), old_mask_, launcher);
  unsetenv(LaunchFolder::kVariable);
  return {};
}

Result<int> Launch::wait() {
  while (true) {
    std::array<pollfd, 2> waits{{{signals_, POLLIN, 0}, {progress_fd_, POLLIN, 0}}};
    poll(waits.data(), waits.size(), stop_ == 0 ? 20 * kPollMs : kPollMs);
    take_signals();
    read_progress();
    if (reap()) break;
    pass_on();
  }
  read_progress();
  progress_.finish();
  if (WIFEXITED(status_) && WEXITSTATUS(status_) == 127 && folder_.processes().empty()) {
    return Error{ErrorCode::io, "mpirun: could not be started; is openmpi-bin installed and in PATH?"};
  }
  return verdict();
}

void Launch::take_signals() {
  signalfd_siginfo info{};
  while (read(signals_, &info, sizeof info) == sizeof info) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    if (stop_ == SIGINT && signal == SIGINT) kill_all();
    if (stop_ == 0) stop_ = signal;
  }
}

// Ranks that start late are told when they appear.
void Launch::pass_on() {
  if (stop_ == 0) return;
  for (const auto& [rank, process] : folder_.processes()) {
    if (told_.insert(process).second && belongs(process, folder_.path())) kill(process, stop_);
  }
}

void Launch::read_progress() {
  std::array<char, 4096> block{};
  ssize_t count = 0;
  while ((count = read(progress_fd_, block.data(), block.size())) > 0) unread_.append(block.data(), static_cast<std::size_t>(count));
  for (std::size_t end = 0; (end = unread_.find('\n')) != std::string::npos; unread_.erase(0, end + 1)) progress_.take_line(unread_.substr(0, end));
}

bool Launch::reap() {
  if (mpirun_ == 0) return true;
  if (waitpid(mpirun_, &status_, WNOHANG) != mpirun_) return false;
  mpirun_ = 0;
  return true;
}

void Launch::kill_all() {
  if (mpirun_ > 0) {
    kill(-mpirun_, SIGKILL);
    kill(mpirun_, SIGKILL);
    waitpid(mpirun_, &status_, 0);
    mpirun_ = 0;
  }
  for (const auto& [rank, process] : folder_.processes()) {
    if (belongs(process, folder_.path())) kill(process, SIGKILL);
  }
}

int Launch::verdict() const {
  const auto codes = folder_.exit_codes();
  int worst = 0;
  for (const auto& [rank, code] : codes) {
    if (worst == 0) worst = code;
  }
  if (codes.contains(0) && codes.at(0) != 0) worst = codes.at(0);
  // When a rank dies, mpirun stops the others: their 143 is no stop of the job.
  const bool is_stop = worst > 128;
  if (is_stop && stop_ != 0) return stop_ == SIGINT ? 130 : 143;
  if (codes.size() == ranks_ || (worst != 0 && !is_stop)) return worst;
  if (stop_ == SIGINT) return 130;
  for (std::uint32_t rank = 0; rank < ranks_; ++rank) {
    if (codes.contains(rank)) continue;
    fmt::print(stderr, "troupe: rank {} ended without a word (killed, or out of memory)\n", rank);
    break;
  }
  return 1;
}

}  // namespace

Result<int> launch(const LaunchRequest& request) {
  auto within = transport::launched_with_mpi();
  if (!within) return within.error();
  if (*within) return Error{ErrorCode::bad_input, "--ranks: want a process that no launcher started, got one of a world of ranks; leave --ranks out under mpirun or srun"};
  auto folder = LaunchFolder::create();
  if (!folder) return folder.error();
  Launch launch(std::move(*folder), request.ranks);
  if (auto done = launch.start(request.arguments); !done) return done.error();
  return launch.wait();
}

}  // namespace troupe::jobs
