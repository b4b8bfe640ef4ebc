// A GRPO run from the opened folder to its end, on every rank.

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "actors/record/recorder.hpp"
#include "actors/record/run_record.hpp"
#include "actors/system.hpp"
#include "jobs/compute.hpp"
#include "jobs/grpo/cast.hpp"
#include "jobs/grpo/environment.hpp"
#include "jobs/grpo/gather.hpp"
#include "jobs/grpo/reporter.hpp"
#include "jobs/grpo/setting.hpp"
#include "jobs/job.hpp"
#include "jobs/launch/stop_signals.hpp"
#include "jobs/report/wall_clock.hpp"
#include "models/numerics/contract.hpp"
#include "models/weights.hpp"
#include "transport/collectives/fabric.hpp"
#include "transport/handshake.hpp"

namespace troupe::jobs {
namespace {

namespace fs = std::filesystem;
using namespace grpo;

constexpr unsigned kActorThreads = 2;  ///< of the pool; members of gangs have their own

/// Set once, from any thread; the main thread waits for it.
template <class T>
class Once {
 public:
  void set(T value) {
    const std::lock_guard lock(mutex_);
    if (!value_) value_ = std::move(value);
    changed_.notify_all();
  }
  T wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return value_.has_value(); });
    return *value_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<T> value_;
};

/// Where this attempt begins, as rank 0 tells it.
struct Beginning {
  std::uint64_t step = 0;
  std::uint32_t attempt = 0;
  std::string run_id;
  bool is_fresh = true;  ///< no checkpoint yet
  Error error;           ///< ok: none
  TROUPE_FIELDS(step, attempt, run_id, is_fresh, error)
};

/// How this attempt went on one rank.
struct RankEnd {
  std::uint64_t messages = 0;
  std::uint64_t recorded_bytes = 0;
  double recording_share = 0;  ///< of wall time: digests, encoding, the journal's thread, waits for the disk
  TROUPE_FIELDS(messages, recorded_bytes, recording_share)
};

record::RunInfo run_info(const GrpoConfig& config, const scheduler::Plan& plan) {
  record::RunInfo info{.run_id = {}, .configuration = canonical_text(JobConfig(config)), .build_id = fmt::format("{:016x}", transport::build_id()),
                       .contract = models::numerics::contract_label(), .level = config.common.record_level, .facts = {}};
  const std::string identity = info.configuration + info.build_id;
  info.run_id = digest128(std::as_bytes(std::span(identity))).hex();
  for (const scheduler::Request& request : plan.requests) {
    std::string where = fmt::format("rank {} on {}", index(plan.rank_of(request.name)), plan.inventory.host_of(plan.rank_of(request.name)).name);
    for (const std::string& gpu : plan.gpus_of(request.name)) where += ", " + gpu;
    info.facts.push_back({"placement of " + request.name, std::move(where)});
  }
  return info;
}

/// Rank 0: makes or opens the record, and begins an attempt from the last checkpoint.
Result<Beginning> begin(std::optional<record::RunRecord>& record, const GrpoConfig& config, const scheduler::Plan& plan, const JobContext& context) {
  const bool is_new = !fs::exists(run_paths::record(context.run));
  Result<record::RunRecord> opened = is_new ? record::RunRecord::create(context.run, run_info(config, plan)) : record::RunRecord::open(context.run);
  if (!opened) return opened.error();
  record.emplace(std::move(*opened));
  if (is_new) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(context.run)) {
      const std::string relative = fs::relative(entry.path(), context.run).string();
      if (!entry.is_regular_file() || !(relative.starts_with("inputs") || relative == "job.toml")) continue;
      if (Result<void> added = record->add_file(relative); !added) return added.error();
    }
  }
  Beginning beginning{.run_id = record->manifest().run_id, .error = {ErrorCode::ok, {}}};
  if (!record->checkpoints().empty()) beginning.step = record->checkpoints().back().step, beginning.is_fresh = false;
  Result<std::uint32_t> attempt = record->begin_attempt(beginning.step, context.ranks());
  if (!attempt) return attempt.error();
  beginning.attempt = *attempt;
  return beginning;
}

Result<Beginning> begin_together(std::optional<record::RunRecord>& record, const GrpoConfig& config, const scheduler::Plan& plan, JobContext& context) {
  Beginning mine;
  if (context.is_rank_zero()) {
    Result<Beginning> begun = begin(record, config, plan, context);
    if (begun) mine = *begun;
    else mine.error = begun.error();
  }
  Result<std::vector<Beginning>> all = gather(context.world, mine);
  if (!all) return all.error();
  if (all->front().error.code != ErrorCode::ok) return all->front().error;
  return all->front();
}

/// One rank's run: what lives from the first actor to the last.
class Run {
 public:
  Run(const GrpoConfig& config, JobContext& context, scheduler::Plan plan, Beginning beginning, std::optional<record::RunRecord> record)
      : config_(config), context_(context), plan_(std::move(plan)), beginning_(std::move(beginning)), record_(std::move(record)) {}

  Result<JobEnd> run() {
    Result<void> ready = prepare();
    if (ready) {
      system_.emplace(*executor_, system_options());
      ready = spawn(*system_, config_, plan_, beginning_.attempt);
    }
    // One rank that cannot begin ends the job on all.
    if (Result<void> agreed = agree(context_.world, ready, kLoadDeadline_s); !agreed) return agreed.error();
    if (context_.is_rank_zero()) {
      if (Result<void> sent = system_->tell<Start>(system_->ref("director"), beginning_.is_fresh); !sent) return sent.error();
      // After Start: a signal that came while the model was loading calls back at once.
      context_.stop.on_stop([this](int) { (void)system_->tell<Stop>(system_->ref("director")); });
    }
    Outcome outcome = ended_.wait();
    context_.stop.on_stop({});
    return end(std::move(outcome));
  }

 private:
  Result<void> prepare() {
    Result<Environment> environment = make_environment(config_, context_.world, context_.run, beginning_.is_fresh ? std::nullopt : std::optional(beginning_.step));
    if (!environment) return environment.error();
    if (config_.common.record_level != "off") {
      Result<std::unique_ptr<record::Journal>> journal = record::create_journal(context_.run, beginning_.run_id, beginning_.attempt, index(context_.world.rank()));
      if (!journal) return journal.error();
      journal_ = std::move(*journal);
      recorder_ = std::make_unique<record::Recorder>(*journal_, config_.common.record_level == "full" ? record::RecordLevel::full : record::RecordLevel::order);
    }
    if (context_.is_rank_zero()) {
      Result<Reporter> reporter = Reporter::open(context_.run, beginning_.step, config_.common.steps, context_.progress);
      if (!reporter) return reporter.error();
      reporter_.emplace(std::move(*reporter));
      if (!beginning_.is_fresh) context_.progress.note(fmt::format("resumed from the checkpoint of step {}", beginning_.step));
      environment->phase_ended = [this](std::string_view phase) { reporter_->phase_ended(phase); };
      environment->report = [this](std::uint64_t step, const std::map<std::string, double>& metrics) {
        if (Result<void> written = reporter_->report(step, metrics); !written) fail(written.error());
      };
      environment->write_checkpoint = [this](std::uint64_t step, const Checkpoint& checkpoint) { return write_checkpoint(step, checkpoint); };
      environment->finish = [this](const Outcome& outcome) { ended_.set(outcome); };
    }
    install(std::move(*environment));
    executor_ = make_pool_executor(kActorThreads);
    return {};
  }

  SystemOptions system_options() {
    SystemOptions options{.link = context_.world.link(), .observer = recorder_.get(), .seed = config_.common.seed, .directory = directory(plan_)};
    options.ask_deadline = std::chrono::hours(24);  // a step may take long; a lost rank is noticed by its link
    options.on_fatal = [this](const Error& error) { fail(error); };
    options.on_failure = [this](std::string_view, const Error& error) { fail(error); };
    options.on_peer_lost = [this](Rank rank, const Error& error) { fail({error.code, fmt::format("rank {} was lost: {}", index(rank), error.detail)}); };
    options.on_sync = [this](std::uint64_t step) { return sync(step); };
    options.on_shut_down = [this](const Error& reason) { ended_.set({.error = reason}); };
    return options;
  }

  void fail(const Error& error) { ended_.set({.error = error}); }

  Result<void> sync(std::uint64_t step) {
    if (!journal_) return {};
    recorder_->mark_step(step);
    return journal_->sync();
  }

  // This rank's mark comes first: what is delivered before it on any rank was sent before the others' marks.
  Result<void> write_checkpoint(std::uint64_t step, const Checkpoint& checkpoint) {
    if (Result<void> done = sync(step); !done) return done;
    if (Result<void> done = system_->sync_others(step); !done) return done;
    const std::string digest = models::weights_digest(checkpoint.trainer.weights).hex();
    if (Result<void> done = record_->add_checkpoint(step, to_value(checkpoint), digest); !done) return done;
    if (config_.common.checkpoint_keep > 0) return record_->keep(config_.common.checkpoint_keep);
    return {};
  }

  Result<JobEnd> end(Outcome outcome) {
    // Rank 0 ends the job; any other rank only when it cannot go on, since its orderly goodbye would leave the others waiting.
    if (context_.is_rank_zero() || outcome.error.code != ErrorCode::ok) system_->shut_down_others(outcome.error);
    // A member of a gang may wait for one that has failed.
    if (outcome.error.code != ErrorCode::ok) collectives::Fabric::process().abort_all(outcome.error);
    system_->stop();
    RankEnd mine{.messages = system_->delivered()};
    system_.reset();
    if (journal_) {
      mine.recorded_bytes = journal_->cost().bytes;
      const record::RecordingCost cost = journal_->cost();
      mine.recording_share = std::chrono::duration<double>(cost.in_actors + cost.in_writer).count() / (monotonic_seconds() - began_s_);
      if (Result<void> closed = journal_->close(outcome.error); !closed && outcome.error.code == ErrorCode::ok) outcome.error = closed.error();
      recorder_.reset();
      journal_.reset();
    }
    if (outcome.error.code != ErrorCode::ok) return failed(outcome.error);
    Result<std::vector<RankEnd>> all = gather(context_.world, mine);
    if (!all) return all.error();
    if (!outcome.is_done) return JobEnd{.code = context_.stop.exit_code().value_or(context_.is_rank_zero() ? 1 : 0)};
    return finished(outcome, *all);
  }

  // The others' reason is rank 0's; a lost rank leaves it to whoever still is there.
  Result<JobEnd> failed(const Error& error) { return Error{error.code == ErrorCode::bad_input ? ErrorCode::actor_failed : error.code, error.detail}; }

  Result<JobEnd> finished(const Outcome& outcome, const std::vector<RankEnd>& ranks) {
    Summary summary{.steps = outcome.director.step, .digest = outcome.digest};
    RankEnd sum;
    for (const RankEnd& each : ranks) {
      sum.messages += each.messages;
      sum.recorded_bytes += each.recorded_bytes;
      sum.recording_share = std::max(sum.recording_share, each.recording_share);
    }
    summary.messages = sum.messages;
    summary.metrics = outcome.metrics;
    summary.metrics["val/accuracy_before"] = outcome.director.accuracy_before;
    summary.metrics["val/accuracy_after"] = outcome.director.accuracy_after;
    summary.metrics["training/rollout_probs_diff_max"] = outcome.director.probs_diff_max;
    if (sum.messages > 0 && sum.recorded_bytes > 0) {
      summary.metrics["record/bytes_per_message"] = static_cast<double>(sum.recorded_bytes) / static_cast<double>(sum.messages);
      summary.metrics["record/share_of_wall_max"] = sum.recording_share;  // of the rank that spent most
    }
    if (Result<void> sealed = record_->seal(fmt::format("{} steps, digest {}", summary.steps, summary.digest)); !sealed) return sealed.error();
    return JobEnd{.code = 0, .summary = std::move(summary)};
  }

  const GrpoConfig& config_;
  JobContext& context_;
  scheduler::Plan plan_;
  Beginning beginning_;
  std::optional<record::RunRecord> record_;
  std::unique_ptr<record::Journal> journal_;
  std::unique_ptr<record::Recorder> recorder_;
  std::optional<Reporter> reporter_;
  std::unique_ptr<Executor> executor_;
  const double began_s_ = monotonic_seconds();
  Once<Outcome> ended_;
  std::optional<System> system_;
};

}  // namespace

Result<JobEnd> run_grpo(const GrpoConfig& config, JobContext& context) {
  Result<scheduler::Plan> placed = plan_together(config, context.world);
  if (!placed) return placed.error();
  std::optional<record::RunRecord> record;
  Result<Beginning> beginning = begin_together(record, config, *placed, context);
  if (!beginning) return beginning.error();
  return Run(config, context, std::move(*placed), std::move(*beginning), std::move(record)).run();
}

}  // namespace troupe::jobs
