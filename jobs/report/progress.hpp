#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace troupe::jobs {

/// What a job tells of a step.
struct StepReport {
  std::uint64_t step = 0;
  std::uint64_t steps = 0;
  std::uint64_t tokens = 0;         ///< computed in this step
  std::optional<double> reward;     ///< mean
  std::optional<double> accuracy;   ///< 0 to 1
  std::optional<double> loss;
};

/// Shows how far a job is, on stderr: a bar on a terminal, a line a step otherwise. In a rank that a launcher started the reports go
/// to the launcher, which shows them. One thread.
class Progress {
 public:
  /// Shows on stderr.
  static Progress for_people();
  /// For a rank: the launcher's, where there is one; nothing on ranks other than 0.
  static Progress for_this_rank();

  Progress(Progress&& other) noexcept;
  Progress& operator=(Progress&&) = delete;
  ~Progress();

  void step(const StepReport& report);
  /// One line for people: "resumed from step 20".
  void note(std::string_view text);
  /// Ends the bar's line.
  void finish();

  /// A line that another process's Progress wrote to the launcher.
  void take_line(std::string_view line);

 private:
  enum class Way { nowhere, bar, lines, launcher };
  Progress(Way way, int fd) : way_(way), fd_(fd) {}
  void show(StepReport report);

  Way way_;
  int fd_;                     ///< the launcher's fifo, or -1
  double started_s_ = -1;      ///< of the first step's report
  double last_s_ = 0;
  std::uint64_t first_step_ = 0;
  std::uint64_t tokens_ = 0;   ///< since then
  std::optional<double> accuracy_;  ///< the last: not every step evaluates
  bool is_open_ = false;       ///< the bar's line has not ended
};

/// The bar's text in `columns`: "step 12/100 [###     ] reward 0.41 accuracy 0.38 5210 tokens/s 1:02 left".
std::string progress_bar(const StepReport& report, double tokens_per_s, double seconds_left, int columns);
std::string progress_line(const StepReport& report, double tokens_per_s, double seconds_left);

/// A report as one line, for the launcher, and back.
std::string encode_report(const StepReport& report);
std::optional<StepReport> decode_report(std::string_view line);

}  // namespace troupe::jobs
