#include "jobs/report/progress.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "jobs/launch/launch_folder.hpp"
#include "jobs/report/wall_clock.hpp"

namespace troupe::jobs {
namespace {

int terminal_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::max(0.0, std::round(seconds)));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string numbers(const StepReport& report, double tokens_per_s, double seconds_left) {
  std::string text;
  if (report.loss) text += fmt::format("  loss {:.4f}", *report.loss);
  if (report.reward) text += fmt::format("  reward {:.3f}", *report.reward);
  if (report.accuracy) text += fmt::format("  accuracy {:.1f} %", 100 * *report.accuracy);
  if (tokens_per_s > 0) text += fmt::format("  {:.0f} tokens/s", tokens_per_s);
  if (seconds_left >= 0) text += fmt::format("  {} left", clock_text(seconds_left));
  return text;
}

}  // namespace

Progress Progress::for_people() { return {isatty(STDERR_FILENO) == 1 ? Way::bar : Way::lines, -1}; }

Progress Progress::for_this_rank() {
  if (rank_from_environment() != 0) return {Way::nowhere, -1};
  const auto folder = LaunchFolder::of_this_process();
  if (!folder) return for_people();
  const int fd = open(folder->fifo().c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  return {fd >= 0 ? Way::launcher : Way::lines, fd};
}

Progress::Progress(Progress&& other) noexcept
    : way_(std::exchange(other.way_, Way::nowhere)), fd_(std::exchange(other.fd_, -1)), started_s_(other.started_s_), last_s_(other.last_s_),
      first_step_(other.first_step_), tokens_(other.tokens_), accuracy_(other.accuracy_), is_open_(std::exchange(other.is_open_, false)) {}

Progress::~Progress() {
  finish();
  if (fd_ >= 0) close(fd_);
}

void Progress::step(const StepReport& report) {
  if (way_ == Way::nowhere) return;
  if (way_ != Way::launcher) return show(report);
  // Atomic below PIPE_BUF. A launcher that does not read costs the bar, not the run.
  const std::string line = encode_report(report) + "\n";
  [[maybe_unused]] const auto written = write(fd_, line.data(), line.size());
}

void Progress::note(std::string_view text) {
  if (way_ == Way::nowhere) return;
  if (way_ == Way::launcher) {
    const std::string line = fmt::format("note {}\n", text.substr(0, 1000));
    [[maybe_unused]] const auto written = write(fd_, line.data(), line.size());
    return;
  }
  if (is_open_) fmt::print(stderr, "\r\033[K");
  fmt::print(stderr, "troupe: {}\n", text);
}

void Progress::take_line(std::string_view line) {
  if (line.starts_with("note ")) return note(line.substr(5));
  if (const auto report = decode_report(line)) show(*report);
}

void Progress::finish() {
  if (is_open_) fmt::print(stderr, "\n");
  is_open_ = false;
}

void Progress::show(StepReport report) {
  if (report.accuracy) accuracy_ = report.accuracy;
  report.accuracy = accuracy_;
  const double now_s = monotonic_seconds();
  if (started_s_ < 0) {
    started_s_ = now_s;
    first_step_ = report.step;
  } else {
    tokens_ += report.tokens;
  }
  const double taken_s = now_s - started_s_;
  const auto done = static_cast<double>(report.step - std::min(first_step_, report.step));
  const double tokens_per_s = taken_s > 0 ? static_cast<double>(tokens_) / taken_s : 0;
  const double left_s = done > 0 ? taken_s / done * static_cast<double>(report.steps - report.step) : -1;
  if (way_ == Way::bar) {
    fmt::print(stderr, "\r\033[K{}", progress_bar(report, tokens_per_s, left_s, terminal_columns()));
    is_open_ = true;
    return;
  }
  // Plain lines: no more than one a second, and the last.
  if (now_s - last_s_ < 1 && report.step != report.steps) return;
  last_s_ = now_s;
  fmt::print(stderr, "{}\n", progress_line(report, tokens_per_s, left_s));
}

std::string progress_line(const StepReport& report, double tokens_per_s, double seconds_left) {
  return fmt::format("step {}/{}{}", report.step, report.steps, numbers(report, tokens_per_s, seconds_left));
}

std::string progress_bar(const StepReport& report, double tokens_per_s, double seconds_left, int columns) {
  const std::string head = fmt::format("step {}/{} ", report.step, report.steps);
  const std::string tail = numbers(report, tokens_per_s, seconds_left);
  const int room = columns - 1 - static_cast<int>(head.size() + tail.size()) - 2;
  if (room < 5) return (head + tail).substr(0, static_cast<std::size_t>(std::max(0, columns - 1)));
  const auto width = static_cast<std::size_t>(std::min(room, 40));
  const double share = report.steps == 0 ? 0 : static_cast<double>(std::min(report.step, report.steps)) / static_cast<double>(report.steps);
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(width));
  return fmt::format("{}[{}{}]{}", head, std::string(filled, '#'), std::string(width - filled, ' '), tail);
}

std::string encode_report(const StepReport& report) {
  std::string line = fmt::format("step {} {} {}", report.step, report.steps, report.tokens);
  if (report.reward) line += fmt::format(" reward={}", *report.reward);
  if (report.accuracy) line += fmt::format(" accuracy={}", *report.accuracy);
  if (report.loss) line += fmt::format(" loss={}", *report.loss);
  return line;
}

std::optional<StepReport> decode_report(std::string_view line) {
  std::istringstream words{std::string(line)};
  std::string word;
  StepReport report;
  if (!(words >> word >> report.step >> report.steps >> report.tokens) || word != "step") return std::nullopt;
  while (words >> word) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) return std::nullopt;
    const double value = std::strtod(word.c_str() + equals + 1, nullptr);
    const std::string_view name = std::string_view(word).substr(0, equals);
    if (name == "reward") report.reward = value;
    if (name == "accuracy") report.accuracy = value;
    if (name == "loss") report.loss = value;
  }
  return report;
}

}  // namespace troupe::jobs
