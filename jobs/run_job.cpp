#include <fmt/format.h>

#include "jobs/exit_code.hpp"
#include "jobs/grpo/gather.hpp"
#include "jobs/job.hpp"
#include "jobs/report/progress.hpp"
#include "jobs/report/wall_clock.hpp"

namespace troupe::jobs {
namespace {

/// What rank 0 found, as the others hear it: a state, or an error's code and detail.
struct Opening {
  RunState state = RunState::fresh;
  std::optional<Error> error;
};

Bytes encode_opening(const Opening& opening) {
  std::string text{static_cast<char>(opening.state), static_cast<char>(opening.error ? opening.error->code : ErrorCode::ok)};
  if (opening.error) text += opening.error->detail;
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

Result<Opening> share(const Opening& mine, transport::World& world) {
  auto all = world.all_gather(world.rank() == Rank{0} ? encode_opening(mine) : Bytes{});
  if (!all) return all.error();
  const Bytes& told = all->front();
  if (told.size() < 2) return Error{ErrorCode::internal, "rank 0 said nothing about the run's folder"};
  Opening opening{.state = static_cast<RunState>(told[0]), .error = {}};
  if (const auto code = static_cast<ErrorCode>(told[1]); code != ErrorCode::ok) {
    opening.error = Error{code, std::string(reinterpret_cast<const char*>(told.data()) + 2, told.size() - 2)};
  }
  return opening;
}

Result<JobEnd> run_kind(const JobConfig& config, JobContext& context) {
  if (const auto* sft = std::get_if<SftConfig>(&config)) return run_sft(*sft, context);
  return run_grpo(std::get<GrpoConfig>(config), context);
}

// Nothing was written yet when the job was refused for what it was given.
bool is_refusal(const Error& error) {
  return error.code == ErrorCode::bad_input || error.code == ErrorCode::unsupported || error.code == ErrorCode::resource_short || error.code == ErrorCode::locked;
}

}  // namespace

Result<int> run_job(const JobConfig& given, const std::filesystem::path& run, transport::World& world, Progress& progress, StopSignals& stop) {
  const double began_s = monotonic_seconds();
  JobContext context{.run = run, .state = RunState::fresh, .world = world, .progress = progress, .stop = stop};
  std::optional<RunFolder> folder;
  Opening opening;
  if (context.is_rank_zero()) {
    auto opened = RunFolder::open(run, given);
    if (opened) {
      opening.state = opened->state();
      folder.emplace(std::move(*opened));
      if (!folder->notice().empty()) progress.note(folder->notice());
    } else {
      opening.error = opened.error();
    }
  }
  auto shared = share(opening, world);
  if (!shared) return shared.error();
  if (shared->error) return *shared->error;
  if (shared->state == RunState::finished) return 0;
  context.state = shared->state;
  auto config = opened_config(run, given);
  if (auto agreed = grpo::agree(world, config); !agreed) return agreed.error();

  auto end = run_kind(*config, context);
  if (!folder) return end ? Result<int>(end->code) : Result<int>(end.error());
  if (!end && is_refusal(end.error())) {
    folder->abandon();
    return end.error();
  }
  const CommonConfig& keys = common(given);
  Summary summary{.job = keys.job, .state = "failed", .steps = 0, .seed = keys.seed, .ranks = context.ranks(), .wall_s = monotonic_seconds() - began_s, .digest = {}, .messages = 0, .metrics = {}};
  if (end && end->summary) {
    summary.steps = end->summary->steps;
    summary.digest = end->summary->digest;
    summary.messages = end->summary->messages;
    summary.metrics = end->summary->metrics;
    summary.state = end->code == 0 ? "done" : "failed";
  }
  const bool is_stopped = end && end->code > 1;
  if (!end) print_error(end.error());
  const auto written = is_stopped ? Result<void>{} : write_summary(run, summary);
  if (!written) print_error(written.error());
  return end && written ? end->code : 1;
}

}  // namespace troupe::jobs
