#include "jobs/debug/debugger.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "jobs/config/binder.hpp"
#include "jobs/debug/describe.hpp"
#include "jobs/debug/expression.hpp"
#include "jobs/debug/worker.hpp"

namespace troupe::jobs::debug {
namespace {

constexpr double kDense_s = 0.03;  ///< of re-execution between snapshots, where the debugger goes backwards
constexpr int kPoll_ms = 50;

/// A process that stands at position n.
struct Process {
  Channel channel;
  std::uint64_t n = 0;
};

std::vector<std::string> names_of(std::span<const record::IndexedActor> actors) {
  std::vector<std::string> names;
  for (const record::IndexedActor& actor : actors) names.push_back(actor.name);
  return names;
}

Error no_such(const char* what, const std::string& name, const std::vector<std::string>& names) {
  const auto near = nearest(name, names);
  return {ErrorCode::bad_input, fmt::format("{}: no such {} in this run{}", name, what, near ? fmt::format("; did you mean {}?", *near) : std::string())};
}

}  // namespace

std::string_view to_string(StopReason reason) {
  constexpr std::string_view names[] = {"moved", "breakpoint", "watchpoint", "supervision", "divergence", "begin", "end", "interrupted"};
  return names[static_cast<std::size_t>(reason)];
}

struct Debugger::State {
  State(Recording opened, DebuggerOptions given) : recording(std::move(opened)), options(std::move(given)), starts(start_points(recording)) {}
  ~State() {
    if (shared != nullptr) ::munmap(shared, sizeof(Shared));
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Recording recording;
  DebuggerOptions options;
  std::vector<StartPoint> starts;
  Shared* shared = nullptr;
  std::optional<Process> live;
  std::vector<Process> snapshots;  ///< ascending by n, one for each
  std::vector<Process> branch;     ///< its processes, the newest last; the first stands where it began
  std::map<std::uint32_t, Breakpoint> breakpoints;
  std::uint32_t made = 0;
  std::function<void(const std::string&)> log;

  const record::Index& index() const { return recording.index; }

  // --- processes

  Result<void> map_shared() {
    void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return Error{ErrorCode::io, fmt::format("debugger: mmap: {}", std::strerror(errno))};
    shared = new (memory) Shared;
    return {};
  }

  /// A process of its own from a start point.
  Result<Process> launch(const StartPoint& start) {
    Result<std::pair<Channel, Channel>> ends = Channel::pair();
    if (!ends) return ends.error();
    std::fflush(nullptr);
    const pid_t child = ::fork();
    if (child < 0) return Error{ErrorCode::io, fmt::format("debugger: fork: {}", std::strerror(errno))};
    if (child == 0) {
      Channel mine = std::move(ends->second);
      ends->first = Channel();
      live.reset();  // other processes end when nobody holds their channels
      snapshots.clear();
      branch.clear();
      Worker(recording, *shared, std::move(mine)).serve(start);
    }
    Process process{.channel = std::move(ends->first), .n = start.n};
    Result<Answer> answer = receive(process.channel);
    if (!answer) return answer.error();
    if (const auto* error = std::get_if<Error>(&*answer)) return *error;
    return process;
  }

  Result<Answer> receive(Channel& channel, Descriptor* attached = nullptr, const std::function<void()>& waiting = {}) {
    while (waiting) {
      pollfd ready{.fd = channel.descriptor().get(), .events = POLLIN, .revents = 0};
      const int count = ::poll(&ready, 1, kPoll_ms);
      if (count > 0) break;
      waiting();
    }
    return channel.receive_value<Answer>(attached);
  }

  Result<Process> copy(Process& of) {
    if (Result<void> sent = of.channel.send_value(Command(Fork{})); !sent) return sent.error();
    Descriptor descriptor;
    Result<Answer> answer = receive(of.channel, &descriptor);
    if (!answer) return answer.error();
    if (const auto* error = std::get_if<Error>(&*answer)) return *error;
    return Process{.channel = Channel(std::move(descriptor)), .n = of.n};
  }

  void keep(Process process) {
    const auto at = std::lower_bound(snapshots.begin(), snapshots.end(), process.n, [](const Process& each, std::uint64_t n) { return each.n < n; });
    if (at != snapshots.end() && at->n == process.n) return;
    snapshots.insert(at, std::move(process));
    while (snapshots.size() > options.snapshots_max) thin();
  }

  /// Removes the snapshot that is missed least: one with near neighbours, far from the position.
  void thin() {
    const std::uint64_t here = live ? live->n : 0;
    std::size_t least = 0;
    double least_worth = 0;
    for (std::size_t i = 0; i < snapshots.size(); ++i) {
      const std::uint64_t before = i == 0 ? 0 : snapshots[i - 1].n;
      const std::uint64_t after = i + 1 < snapshots.size() ? snapshots[i + 1].n : index().count();
      const std::uint64_t n = snapshots[i].n;
      const std::uint64_t distance = n > here ? n - here : here - n;
      const double worth = static_cast<double>(after - before) / static_cast<double>(distance + 1);
      if (i == 0 || worth < least_worth) least = i, least_worth = worth;
    }
    snapshots.erase(snapshots.begin() + static_cast<std::ptrdiff_t>(least));
  }

  /// Before a step forward: so that the step back is at hand.
  void keep_here() {
    if (Result<Process> here = copy(*live)) keep(std::move(*here));
  }

  template <class C>
  Result<Answer> ask(const C& command) {
    Process& process = branch.empty() ? *live : branch.back();
    if (Result<void> sent = process.channel.send_value(Command(command)); !sent) return sent.error();
    Result<Answer> answer = receive(process.channel);
    if (!answer) return answer.error();
    if (const auto* error = std::get_if<Error>(&*answer)) return *error;
    return answer;
  }
  template <class T, class C>
  Result<T> ask_for(const C& command) {
    Result<Answer> answer = ask(command);
    if (!answer) return answer.error();
    T* value = std::get_if<T>(&*answer);
    if (value == nullptr) return Error{ErrorCode::internal, "debugger: an answer of another kind"};
    return std::move(*value);
  }

  /// Runs the live process forward.
  Result<Ran> run(RunTo command) {
    const std::uint64_t from = live->n;
    const double length = static_cast<double>(std::max<std::uint64_t>(command.limit - from, 1));
    shared->position.store(from);
    if (Result<void> sent = live->channel.send_value(Command(command)); !sent) return sent.error();
    for (;;) {
      Descriptor descriptor;
      Result<Answer> answer = receive(live->channel, &descriptor, [&] {
        if (options.progress) options.progress(static_cast<double>(shared->position.load() - from) / length);
      });
      if (!answer) return lost(answer.error());
      if (const auto* snapshot = std::get_if<Snapshot>(&*answer)) {
        keep({.channel = Channel(std::move(descriptor)), .n = snapshot->n});
      } else if (const auto* line = std::get_if<LogLine>(&*answer)) {
        if (log) log(line->text);
      } else if (auto* ran = std::get_if<Ran>(&*answer)) {
        live->n = ran->n;
        return std::move(*ran);
      } else if (const auto* error = std::get_if<Error>(&*answer)) {
        return *error;
      }
    }
  }

  /// The live process died (a handler crashed, or it was killed for memory): stands at the newest place before.
  Error lost(const Error& error) {
    const std::uint64_t at = shared->position.load();
    live.reset();
    if (Result<Ran> back = reach(at, 0); !back) return back.error();
    return {error.code, fmt::format("the re-execution died in the delivery at position {}", at)};
  }

  /// Makes the live process stand at n, from wherever is nearest before it.
  Result<Ran> reach(std::uint64_t n, double snapshot_every_s) {
    if (live && live->n == n) return Ran{.n = n};
    auto after = std::upper_bound(snapshots.begin(), snapshots.end(), n, [](std::uint64_t at, const Process& each) { return at < each.n; });
    Process* snapshot = after == snapshots.begin() ? nullptr : &*std::prev(after);
    const auto start_after = std::upper_bound(starts.begin(), starts.end(), n, [](std::uint64_t at, const StartPoint& each) { return at < each.n; });
    const StartPoint& start = *std::prev(start_after);
    const bool live_serves = live && live->n <= n && (snapshot == nullptr || live->n >= snapshot->n) && live->n >= start.n;
    if (!live_serves) {
      Result<Process> next = Error{};
      if (snapshot != nullptr && snapshot->n >= start.n) next = copy(*snapshot);
      else next = launch(start);
      if (!next) return next.error();
      if (live) keep(std::move(*live));
      live = std::move(*next);
    }
    if (live->n == n) return Ran{.n = n};
    return run({.limit = n, .snapshot_every_s = snapshot_every_s});
  }

  // --- moves

  static Stop stop_of(const Ran& ran, StopReason arrived = StopReason::moved) {
    Stop stop{.reason = ran.reason == StopReason::moved ? arrived : ran.reason, .n = ran.n, .text = ran.text};
    for (const Hit& hit : ran.hits) {
      stop.breakpoints.push_back(hit.id);
      if (stop.text.empty()) stop.text = hit.text;
    }
    return stop;
  }

  Result<Stop> move_to(std::uint64_t n, double snapshot_every_s, StopReason arrived = StopReason::moved) {
    branch.clear();
    Result<Ran> ran = reach(n, snapshot_every_s);
    if (!ran) return ran.error();
    return stop_of(*ran, arrived);
  }

  record::EventFilter filter_of(const Breakpoint& breakpoint) const {
    record::EventFilter filter;
    if (!breakpoint.type.empty()) filter.type = index().find_type(breakpoint.type);
    if (!breakpoint.actor.empty()) filter.actor = index().find_actor(breakpoint.actor);
    if (breakpoint.sender == "outside") filter.sender = record::kOutsideSender;
    else if (!breakpoint.sender.empty()) filter.sender = index().find_actor(breakpoint.sender);
    return filter;
  }

  static bool is_indexed(const Breakpoint& breakpoint) { return breakpoint.condition.empty() && breakpoint.watch.empty() && breakpoint.log.empty() && !breakpoint.on_supervision; }

  std::vector<Check> checks() const {
    std::vector<Check> all;
    for (const auto& [id, breakpoint] : breakpoints) {
      if (!breakpoint.enabled || is_indexed(breakpoint) || breakpoint.on_supervision) continue;
      const record::EventFilter filter = filter_of(breakpoint);
      const auto id_of = [&](const std::optional<std::uint32_t>& actor) { return actor ? static_cast<std::uint64_t>(index().actors()[*actor].id) : 0; };
      Check check{.id = id, .type = filter.type ? *filter.type + 1 : 0, .sender = filter.sender == record::kOutsideSender ? static_cast<std::uint64_t>(kOutside) : id_of(filter.sender),
                  .expression = breakpoint.watch.empty() ? breakpoint.condition : breakpoint.watch, .is_watch = !breakpoint.watch.empty(), .log = breakpoint.log};
      (check.is_watch ? check.watched_actor : check.actor) = id_of(filter.actor);
      all.push_back(std::move(check));
    }
    return all;
  }

  /// The nearest position after `from` at which a breakpoint stops that the index answers; its ids.
  std::pair<std::optional<std::uint64_t>, std::vector<std::uint32_t>> next_indexed(std::uint64_t from) const {
    std::optional<std::uint64_t> nearest;
    std::vector<std::uint32_t> ids;
    const auto consider = [&](std::optional<std::uint64_t> n, std::uint32_t id) {
      if (!n || (nearest && *n > *nearest)) return;
      if (!nearest || *n < *nearest) ids.clear();
      nearest = n;
      ids.push_back(id);
    };
    for (const auto& [id, breakpoint] : breakpoints) {
      if (!breakpoint.enabled) continue;
      if (breakpoint.on_supervision) {
        for (const record::IndexedStop& stop : index().stops()) {
          if (stop.n > from && (breakpoint.actor.empty() || index().actors()[stop.actor].name == breakpoint.actor)) {
            consider(stop.n, id);
            break;
          }
        }
      } else if (is_indexed(breakpoint)) {
        consider(index().find_next(filter_of(breakpoint), from + 1), id);
      }
    }
    return {nearest, ids};
  }
  std::pair<std::optional<std::uint64_t>, std::vector<std::uint32_t>> previous_indexed(std::uint64_t before) const {
    std::optional<std::uint64_t> nearest;
    std::vector<std::uint32_t> ids;
    const auto consider = [&](std::optional<std::uint64_t> n, std::uint32_t id) {
      if (!n || (nearest && *n < *nearest)) return;
      if (!nearest || *n > *nearest) ids.clear();
      nearest = n;
      ids.push_back(id);
    };
    for (const auto& [id, breakpoint] : breakpoints) {
      if (!breakpoint.enabled) continue;
      if (breakpoint.on_supervision) {
        std::optional<std::uint64_t> last;
        for (const record::IndexedStop& stop : index().stops()) {
          if (stop.n < before && (breakpoint.actor.empty() || index().actors()[stop.actor].name == breakpoint.actor)) last = stop.n;
        }
        consider(last, id);
      } else if (is_indexed(breakpoint)) {
        consider(index().find_previous(filter_of(breakpoint), before), id);
      }
    }
    return {nearest, ids};
  }

  /// Counts hits; true when one of them stops.
  bool count_hits(std::vector<std::uint32_t>& ids) {
    std::erase_if(ids, [&](std::uint32_t id) {
      Breakpoint& breakpoint = breakpoints.at(id);
      ++breakpoint.hits;
      if (breakpoint.ignore > 0) {
        --breakpoint.ignore;
        return true;
      }
      return false;
    });
    for (const std::uint32_t id : ids) {
      if (breakpoints.at(id).once) breakpoints.erase(id);
    }
    return !ids.empty();
  }

  StopReason reason_of(const std::vector<std::uint32_t>& ids) const {
    for (const std::uint32_t id : ids) {
      const auto at = breakpoints.find(id);
      if (at != breakpoints.end() && at->second.on_supervision) return StopReason::supervision;
      if (at != breakpoints.end() && !at->second.watch.empty()) return StopReason::watchpoint;
    }
    return StopReason::breakpoint;
  }

  Result<Stop> go_on() {
    for (;;) {
      auto [indexed, ids] = next_indexed(live->n);
      const std::uint64_t limit = indexed.value_or(index().count());
      Result<Ran> ran = run({.limit = limit, .snapshot_every_s = options.snapshot_every_s, .checks = checks()});
      if (!ran) return ran.error();
      if (ran->reason == StopReason::divergence || ran->reason == StopReason::interrupted) return stop_of(*ran);
      Stop stop = stop_of(*ran);
      std::vector<std::uint32_t> hit;
      for (const Hit& each : ran->hits) hit.push_back(each.id);
      if (indexed && ran->n == limit) hit.insert(hit.end(), ids.begin(), ids.end());
      const bool failed = ran->hits.empty() && ran->reason == StopReason::breakpoint;  // a condition that cannot be computed
      if (failed) return stop;
      stop.reason = reason_of(hit);
      if (count_hits(hit)) {
        stop.breakpoints = hit;
        return stop;
      }
      if (live->n >= index().count()) return Stop{.reason = StopReason::end, .n = live->n};
    }
  }

  Result<Stop> go_back() {
    std::uint64_t top = live->n;
    auto [indexed, ids] = previous_indexed(top);
    const std::vector<Check> conditions = checks();
    const std::uint64_t floor = indexed.value_or(0);
    while (!conditions.empty() && top > floor) {
      const std::uint64_t bottom = std::max(floor, place_before(top));
      Result<Ran> there = reach(bottom, kDense_s);
      if (!there) return there.error();
      if (there->reason != StopReason::moved) return stop_of(*there);
      Result<Ran> ran = run({.limit = top, .snapshot_every_s = kDense_s, .all_hits = true, .checks = conditions});
      if (!ran) return ran.error();
      if (ran->reason != StopReason::moved) return stop_of(*ran);
      std::erase_if(ran->hits, [](const Hit& hit) { return hit.id == 0; });
      if (!ran->hits.empty()) {
        const Hit& last = *std::max_element(ran->hits.begin(), ran->hits.end(), [](const Hit& a, const Hit& b) { return a.event < b.event; });
        if (!indexed || last.event > *indexed) {
          Stop stop{.reason = reason_of({last.id}), .n = last.event, .breakpoints = {last.id}, .text = last.text};
          if (Result<Ran> back = reach(last.event, kDense_s); !back) return back.error();
          return stop;
        }
      }
      top = bottom;
    }
    Result<Ran> ran = reach(floor, kDense_s);
    if (!ran) return ran.error();
    if (!indexed) return stop_of(*ran, StopReason::begin);
    Stop stop = stop_of(*ran, reason_of(ids));
    stop.breakpoints = ids;
    return stop;
  }

  /// The nearest place before n from which a process can start.
  std::uint64_t place_before(std::uint64_t n) const {
    std::uint64_t best = 0;
    for (const StartPoint& start : starts) {
      if (start.n < n) best = std::max(best, start.n);
    }
    for (const Process& snapshot : snapshots) {
      if (snapshot.n < n) best = std::max(best, snapshot.n);
    }
    return best;
  }

  // --- branches

  Result<Stop> branch_step() {
    Result<Process> next = copy(branch.back());
    if (!next) return next.error();
    if (Result<void> sent = next->channel.send_value(Command(BranchStep{})); !sent) return sent.error();
    Result<Answer> answer = receive(next->channel);
    if (!answer) return answer.error();
    if (const auto* error = std::get_if<Error>(&*answer)) return *error;
    const auto* ran = std::get_if<Ran>(&*answer);
    if (ran == nullptr) return Error{ErrorCode::internal, "debugger: an answer of another kind"};
    if (ran->reason == StopReason::end) return Stop{.reason = StopReason::end, .n = branch.back().n, .text = ran->text};
    next->n = ran->n;
    branch.push_back(std::move(*next));
    if (branch.size() > options.snapshots_max) branch.erase(branch.begin() + 1);
    return Stop{.reason = StopReason::moved, .n = ran->n};
  }

  Result<ActorId> actor_named(const std::string& name) const {
    if (name.empty()) return ActorId{};
    const std::optional<std::uint32_t> at = index().find_actor(name);
    if (!at) return no_such("actor", name, names_of(index().actors()));
    return index().actors()[*at].id;
  }

  Result<void> check(const Breakpoint& breakpoint) const {
    const std::vector<std::string> actors = names_of(index().actors());
    if (!breakpoint.type.empty() && !index().find_type(breakpoint.type)) {
      return no_such("message type", breakpoint.type, {index().types().begin(), index().types().end()});
    }
    if (!breakpoint.actor.empty() && !index().find_actor(breakpoint.actor)) return no_such("actor", breakpoint.actor, actors);
    if (!breakpoint.sender.empty() && breakpoint.sender != "outside" && !index().find_actor(breakpoint.sender)) return no_such("actor", breakpoint.sender, actors);
    for (const std::string& text : {breakpoint.condition, breakpoint.watch}) {
      if (text.empty()) continue;
      Result<Expression> expression = Expression::parse(text);
      if (!expression) return expression.error();
      if (expression->is_assignment()) return Error{ErrorCode::bad_input, fmt::format("{}: want a condition, got an assignment (== compares)", text)};
    }
    return {};
  }
};

Debugger::Debugger(std::unique_ptr<State> state) : state_(std::move(state)) {}
Debugger::~Debugger() = default;

Result<std::unique_ptr<Debugger>> Debugger::open(const std::filesystem::path& run, DebuggerOptions options) {
  Result<Recording> recording = Recording::open(run, options.progress);
  if (!recording) return recording.error();
  std::unique_ptr<Debugger> debugger(new Debugger(std::make_unique<State>(std::move(*recording), std::move(options))));
  State& state = *debugger->state_;
  if (Result<void> mapped = state.map_shared(); !mapped) return mapped.error();
  state.log = [raw = debugger.get()](const std::string& line) {
    if (raw->on_log) raw->on_log(line);
  };
  if (Result<Ran> begun = state.reach(0, 0); !begun) return begun.error();
  return debugger;
}

const record::Index& Debugger::index() const { return state_->index(); }
const std::filesystem::path& Debugger::run() const { return state_->recording.run; }
std::uint64_t Debugger::position() const { return state_->branch.empty() ? state_->live->n : state_->branch.back().n; }
bool Debugger::is_in_branch() const { return !state_->branch.empty(); }
std::uint64_t Debugger::branch_start() const { return state_->branch.empty() ? 0 : state_->branch.front().n; }
void Debugger::interrupt() { state_->shared->interrupted.store(true); }

Result<Stop> Debugger::step(std::uint64_t count) {
  state_->shared->interrupted.store(false);
  if (is_in_branch()) {
    Result<Stop> stop = Stop{.n = position()};
    for (std::uint64_t i = 0; i < count && stop && stop->reason == StopReason::moved; ++i) stop = state_->branch_step();
    return stop;
  }
  const std::uint64_t here = position();
  if (here >= index().count()) return Stop{.reason = StopReason::end, .n = here};
  state_->keep_here();
  return state_->move_to(here + std::min(count, index().count() - here), state_->options.snapshot_every_s);
}

Result<Stop> Debugger::reverse_step(std::uint64_t count) {
  state_->shared->interrupted.store(false);
  while (is_in_branch() && count > 0) {
    state_->branch.pop_back();
    --count;
  }
  const std::uint64_t here = position();
  if (count == 0) return Stop{.n = here};
  if (here == 0) return Stop{.reason = StopReason::begin, .n = 0};
  return state_->move_to(here - std::min(count, here), kDense_s);
}

Result<Stop> Debugger::next() {
  if (is_in_branch()) return step();
  const std::uint64_t here = position();
  if (here >= count()) return Stop{.reason = StopReason::end, .n = here};
  const std::optional<std::uint64_t> there = index().find_next({.actor = index().event(here).actor}, here + 1);
  return there ? go_to(*there) : Result<Stop>(Stop{.reason = StopReason::end, .n = here, .text = "the actor's last delivery"});
}

Result<Stop> Debugger::reverse_next() {
  const std::uint64_t here = position();
  if (is_in_branch() || here >= count()) return reverse_step();
  const std::optional<std::uint64_t> there = index().find_previous({.actor = index().event(here).actor}, here);
  return there ? go_to(*there) : Result<Stop>(Stop{.reason = StopReason::begin, .n = here, .text = "the actor's first delivery"});
}

Result<Stop> Debugger::go_on() {
  state_->shared->interrupted.store(false);
  if (!is_in_branch()) return state_->go_on();
  for (;;) {
    Result<Stop> stop = state_->branch_step();
    if (!stop || stop->reason != StopReason::moved) return stop;
    if (state_->shared->interrupted.load()) return Stop{.reason = StopReason::interrupted, .n = position()};
  }
}

Result<Stop> Debugger::go_back() {
  state_->shared->interrupted.store(false);
  if (is_in_branch()) {
    state_->branch.clear();
    return Stop{.n = position(), .text = "left the branch"};
  }
  return state_->go_back();
}

Result<Stop> Debugger::go_to(std::uint64_t n) {
  state_->shared->interrupted.store(false);
  if (n > count()) return Error{ErrorCode::bad_input, fmt::format("position: want at most {}, got {}", count(), n)};
  return state_->move_to(n, n < position() ? kDense_s : state_->options.snapshot_every_s);
}

Result<Stop> Debugger::go_to_step(std::uint64_t step) {
  const std::optional<std::uint64_t> n = index().first_of_step(step);
  if (!n) return Error{ErrorCode::bad_input, fmt::format("step: want at most {}, got {}", index().last_step(), step)};
  return go_to(*n);
}

Result<Stop> Debugger::follow() {
  if (is_in_branch() || position() >= count()) return Error{ErrorCode::bad_input, "follow: no recorded delivery here"};
  const std::vector<std::uint64_t> effects = index().effects(position());
  if (effects.empty()) return Error{ErrorCode::bad_input, "follow: this delivery sends nothing that was delivered"};
  return go_to(effects.front());
}

Result<Stop> Debugger::cause() {
  if (is_in_branch() || position() >= count()) return Error{ErrorCode::bad_input, "cause: no recorded delivery here"};
  const std::optional<std::uint64_t> n = index().cause(position());
  if (!n) return Error{ErrorCode::bad_input, "cause: this message came from outside"};
  return go_to(*n);
}

Result<std::uint32_t> Debugger::add(Breakpoint breakpoint) {
  if (Result<void> checked = state_->check(breakpoint); !checked) return checked.error();
  state_->breakpoints[++state_->made] = std::move(breakpoint);
  return state_->made;
}

Result<void> Debugger::change(std::uint32_t id, Breakpoint breakpoint) {
  if (!state_->breakpoints.contains(id)) return Error{ErrorCode::bad_input, fmt::format("breakpoint {}: there is none", id)};
  if (Result<void> checked = state_->check(breakpoint); !checked) return checked;
  state_->breakpoints[id] = std::move(breakpoint);
  return {};
}

Result<void> Debugger::remove(std::uint32_t id) {
  if (state_->breakpoints.erase(id) == 0) return Error{ErrorCode::bad_input, fmt::format("breakpoint {}: there is none", id)};
  return {};
}

const std::map<std::uint32_t, Breakpoint>& Debugger::breakpoints() const { return state_->breakpoints; }

Result<Value> Debugger::state(const std::string& actor) {
  const Result<ActorId> id = state_->actor_named(actor);
  if (!id) return id.error();
  return state_->ask_for<Value>(GetState{static_cast<std::uint64_t>(*id)});
}

Result<Value> Debugger::message() { return state_->ask_for<Value>(GetMessage{}); }

Result<ActorReport> Debugger::report(const std::string& actor) {
  const Result<ActorId> id = state_->actor_named(actor);
  if (!id) return id.error();
  return state_->ask_for<ActorReport>(GetReport{static_cast<std::uint64_t>(*id)});
}

Result<Value> Debugger::environment() { return state_->ask_for<Value>(GetEnvironment{}); }

Result<Value> Debugger::evaluate(const std::string& text, const std::string& actor) {
  const Result<ActorId> id = state_->actor_named(actor);
  if (!id) return id.error();
  const Result<Expression> expression = Expression::parse(text);
  if (!expression) return expression.error();
  if (!expression->is_assignment()) return state_->ask_for<Value>(Evaluate{text, static_cast<std::uint64_t>(*id)});
  const bool is_new = state_->branch.empty();
  if (is_new) {
    Result<Process> process = state_->copy(*state_->live);
    if (!process) return process.error();
    state_->branch.push_back(std::move(*process));
  }
  Result<Value> changed = state_->ask_for<Value>(Assign{text, static_cast<std::uint64_t>(*id)});
  if (!changed && is_new) state_->branch.clear();
  return changed;
}

}  // namespace troupe::jobs::debug
