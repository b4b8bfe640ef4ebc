// Re-executes a recorded GRPO run, segment by segment, and compares every message with the record.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

#include "actors/record/history.hpp"
#include "actors/record/replay.hpp"
#include "actors/record/run_record.hpp"
#include "actors/system.hpp"
#include "jobs/exit_code.hpp"
#include "jobs/grpo/cast.hpp"
#include "jobs/grpo/gather.hpp"
#include "jobs/grpo/segment_link.hpp"
#include "jobs/grpo/setting.hpp"
#include "jobs/grpo/stage.hpp"
#include "jobs/job.hpp"
#include "jobs/report/json.hpp"
#include "jobs/run_folder/inputs.hpp"
#include "jobs/run_folder/paths.hpp"
#include "models/numerics/contract.hpp"
#include "transport/collectives/fabric.hpp"

namespace troupe::jobs {
namespace {

using namespace grpo;

constexpr unsigned kActorThreads = 2;
constexpr std::chrono::milliseconds kPoll{20};
constexpr int kIdlePolls = 10;           ///< in a row with nothing to do on any rank and nothing seen: longer than a message takes
constexpr int kIdlePollsAtEnd = 3;       ///< before the end of a segment whose members of gangs wait for deliveries that the record lacks
constexpr std::uint64_t kCutMax = 4096;  ///< messages that a kill may leave without their causes

/// How far a rank is in a segment.
struct Position {
  std::uint64_t seen = 0;
  bool is_complete = false;
  bool is_idle = false;         ///< nothing runs but members of gangs that wait for another one
  bool is_waiting = false;      ///< such a member is there
  std::uint64_t left = 0;  ///< recorded messages that have not come
  Error error;
  TROUPE_FIELDS(seen, is_complete, is_idle, is_waiting, left, error)
};

/// One segment on this rank.
class SegmentReplay {
 public:
  SegmentReplay(const GrpoConfig& config, transport::World& world, Link* link, const std::filesystem::path& run, const scheduler::Plan& plan, const record::Segment& segment,
                std::uint64_t nonce)
      : config_(config), world_(world), link_(link), run_(run), plan_(plan), segment_(segment), nonce_(nonce), gate_(segment), checker_(segment) {}

  Result<record::ReplayCounts> run() {
    const Result<void> installed = install_segment(config_, world_, run_, segment_);
    if (Result<void> agreed = agree(world_, installed, kLoadDeadline_s); !agreed) return agreed.error();
    const std::unique_ptr<Executor> executor = make_pool_executor(kActorThreads);
    SystemOptions options{.link = link_, .observer = &checker_, .gate = &gate_, .seed = config_.common.seed, .directory = directory(plan_)};
    options.on_peer_lost = [this](Rank, const Error& error) {
      const std::lock_guard lock(mutex_);
      lost_ = error;
    };
    collectives::Fabric::process().reopen();
    System system(*executor, std::move(options));
    const Result<void> replayed = replay(system);
    // Members of gangs may wait for others whose deliveries the record lacks; nobody is to wait for them.
    collectives::Fabric::process().abort_all({ErrorCode::cancelled, "the re-execution has ended"});
    system.stop();
    if (!replayed) return replayed.error();
    return counts_;
  }

 private:
  Result<void> replay(System& system) {
    const Result<void> spawned = spawn(system, config_, plan_, nonce_);
    if (Result<void> agreed = agree(world_, spawned, kLoadDeadline_s); !agreed) return agreed;
    const Result<void> injected = inject_outside(system, segment_);
    if (Result<void> agreed = agree(world_, injected); !agreed) return agreed;
    const Result<bool> followed = follow(system);
    if (!followed) return followed.error();
    counts_ = checker_.counts();
    return *followed ? checker_.finish() : Result<void>{};
  }

  // All ranks look at each other's positions until all are complete and at rest (true), one has diverged, or no actor has anything to do. Then recorded
  // messages did not come again: a divergence, unless a kill ended the record, whose last moments may lack the causes of what other ranks wrote (false).
  Result<bool> follow(const System& system) {
    std::uint64_t last_seen = 0;
    for (int idle = 0;;) {
      Result<std::vector<Position>> all = gather(world_, position(system));
      if (!all) return all.error();
      Position sum{.is_complete = true, .is_idle = true};
      for (const Position& each : *all) {
        if (each.error.code != ErrorCode::ok) return each.error;
        sum.seen += each.seen;
        sum.left += each.left;
        sum.is_complete = sum.is_complete && each.is_complete;
        sum.is_idle = sum.is_idle && each.is_idle;
        sum.is_waiting = sum.is_waiting || each.is_waiting;
      }
      if (sum.is_complete && sum.is_idle && (!sum.is_waiting || idle >= kIdlePollsAtEnd)) return true;
      idle = sum.is_idle && sum.seen == last_seen ? idle + 1 : 0;
      last_seen = sum.seen;
      if (idle > kIdlePolls && !segment_.whole && sum.left <= kCutMax) return false;
      if (idle > kIdlePolls && !sum.is_complete) return Error{ErrorCode::divergence, fmt::format("{} recorded messages were not sent again; the first: {}", sum.left, first_missing())};
      std::this_thread::sleep_for(kPoll);
    }
  }

  Position position(const System& system) {
    const record::ReplayCounts counts = checker_.counts();
    const std::size_t waiting = collectives::Fabric::process().waiting();
    Position mine{.seen = counts.deliveries + counts.notes + counts.states, .is_complete = checker_.complete(), .is_idle = system.active() <= waiting,
                  .is_waiting = waiting > 0, .error = {ErrorCode::ok, {}}};
    for (const System::ActorView& actor : system.actors()) {
      const record::ActorHistory* history = segment_.find(actor.id);
      if (history == nullptr || history->deliveries.size() <= actor.deliveries) continue;
      mine.left += history->deliveries.size() - actor.deliveries;
      const record::RecordedDelivery& next = history->deliveries[actor.deliveries];
      missing_ = fmt::format("actor {}, message {}, {} from {}", actor.name, actor.deliveries, segment_.names[next.type], segment_.name_of(next.origin.sender));
    }
    if (const std::optional<Error> divergence = checker_.divergence()) mine.error = *divergence;
    const std::lock_guard lock(mutex_);
    if (lost_) mine.error = *lost_;
    return mine;
  }
  std::string first_missing() const { return missing_.empty() ? "on another rank" : missing_; }

  const GrpoConfig& config_;
  transport::World& world_;
  Link* link_;
  const std::filesystem::path& run_;
  const scheduler::Plan& plan_;
  const record::Segment& segment_;
  std::uint64_t nonce_;
  record::ReplayGate gate_;
  record::ReplayChecker checker_;
  record::ReplayCounts counts_;
  std::mutex mutex_;
  std::optional<Error> lost_;
  std::string missing_;
};

Result<record::History> read_record(const std::filesystem::path& run) {
  if (const Result<record::VerifyReport> verified = record::verify(run); !verified) return verified.error();
  Result<record::History> history = record::read_history(run);
  if (!history) return history.error();
  if (history->manifest.contract != models::numerics::contract_label()) {
    return Error{ErrorCode::unsupported, fmt::format("{}: recorded under the numerics contract {}, this build has {}", run.string(), history->manifest.contract, models::numerics::contract_label())};
  }
  if (history->line.empty()) return Error{ErrorCode::bad_input, fmt::format("{}: want a run that was recorded, got one without a message (record.level = off)", run.string())};
  return history;
}

Result<int> replay_grpo(const ReplayRequest& request, const record::History& history) {
  Result<JobConfig> opened = read_job(run_paths::job_file(request.run));
  if (opened) opened = opened_config(request.run, *opened);
  if (Result<void> agreed = agree(request.world, opened); !agreed) return agreed.error();
  const auto* config = std::get_if<GrpoConfig>(&*opened);
  if (config == nullptr) return Error{ErrorCode::unsupported, "replay: want a run of actors (grpo), got job = \"" + common(*opened).job + "\""};
  Result<scheduler::Plan> plan = plan_together(*config, request.world);
  if (!plan) return plan.error();
  record::ReplayCounts sum;
  std::uint64_t recorded = 0;
  std::uint64_t nonce = 0;
  std::optional<SegmentLink> link;
  if (request.world.link() != nullptr) link.emplace(*request.world.link());
  for (const record::Segment& segment : history.line) {
    Result<record::ReplayCounts> counts = SegmentReplay(*config, request.world, link ? &*link : nullptr, request.run, *plan, segment, ++nonce).run();
    if (!counts) return counts.error();
    recorded += segment.deliveries();
    sum.deliveries += counts->deliveries;
    sum.notes += counts->notes;
    sum.states += counts->states;
  }
  Result<std::vector<std::uint64_t>> messages = gather(request.world, sum.deliveries);
  Result<std::vector<std::uint64_t>> digests = gather(request.world, sum.notes + sum.states);
  if (!messages || !digests) return (messages ? digests : messages).error();
  std::uint64_t all_messages = 0, all_digests = 0;
  for (const std::uint64_t each : *messages) all_messages += each;
  for (const std::uint64_t each : *digests) all_digests += each;
  const std::uint64_t cut = recorded - std::min(recorded, all_messages);
  if (cut > 0 && history.line.back().whole) {
    return Error{ErrorCode::divergence, fmt::format("the record has {} messages, the re-execution {}: an actor of the record is not one of this build's", recorded, all_messages)};
  }
  if (request.world.rank() != Rank{0}) return 0;
  const std::string digest = history.manifest.checkpoints.empty() ? std::string() : history.manifest.checkpoints.back().weights_digest;
  if (request.json) {
    fmt::print("{{\"equal\": true, \"messages\": {}, \"digests\": {}, \"segments\": {}, \"digest\": \"{}\"}}\n", all_messages, all_digests, history.line.size(), digest);
  } else {
    fmt::print("equal: {} messages and {} noted digests in {} segment{}, weights {}{}\n", all_messages, all_digests, history.line.size(), history.line.size() == 1 ? "" : "s", digest,
               cut == 0 ? "" : fmt::format(" (the record's last {} messages lack their causes: a kill cut it)", cut));
  }
  std::fflush(stdout);
  return 0;
}

}  // namespace

Result<int> replay_run(const ReplayRequest& request) {
  Result<record::History> history = read_record(request.run);
  if (Result<void> agreed = agree(request.world, history, kLoadDeadline_s); !agreed) history = agreed.error();
  if (!history && history.error().code != ErrorCode::corrupt) return history.error();
  Result<int> code = history ? replay_grpo(request, *history) : Result<int>(history.error());
  if (code || code.error().code == ErrorCode::bad_input || code.error().code == ErrorCode::unsupported) return code;
  if (request.world.rank() == Rank{0}) {
    if (request.json) fmt::print("{{\"equal\": false, \"error\": {}}}\n", json_string(code.error().detail));
    print_error(code.error());
  }
  return 1;
}

}  // namespace troupe::jobs
