#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/base/error.hpp"
#include "actors/base/value.hpp"
#include "actors/record/index.hpp"

namespace troupe::jobs::debug {

struct DebuggerOptions {
  std::vector<std::string> actors;              ///< only these, each alone (a record of level full); empty: all
  std::function<void(double done)> progress;    ///< of a long pass: 0 to 1; called every 50 ms at most
  double snapshot_every_s = 0.25;               ///< of re-execution
  std::uint32_t snapshots_max = 64;             ///< processes kept; the sparsest far from the position stay
};

/// Why a move ended, and where.
enum class StopReason : std::uint8_t {
  moved,        ///< it got where it was to go
  breakpoint,
  watchpoint,
  supervision,  ///< an actor stopped or was restarted
  divergence,   ///< the re-execution is not the record; text says where
  begin,        ///< of the record, going back
  end,          ///< of the record
  interrupted,
};
std::string_view to_string(StopReason reason);

struct Stop {
  StopReason reason = StopReason::moved;
  std::uint64_t n = 0;                       ///< the position: what is delivered next
  std::vector<std::uint32_t> breakpoints;    ///< those hit
  std::string text;                          ///< one line for people; of a watchpoint its expression, old and new value
  TROUPE_FIELDS(reason, n, breakpoints, text)
};

/// What to stop at. Fields that are empty match everything; types and actors are names (types with or without their namespaces).
struct Breakpoint {
  std::string type, actor, sender;
  std::string condition;      ///< EXPR. Seen before the delivery; one that uses old() after it
  std::string watch;          ///< EXPR of `actor`'s state (or of the receiver's): stops after a delivery that changed its value
  bool on_supervision = false;
  std::uint64_t ignore = 0;   ///< hits to pass over first
  std::string log;            ///< not empty: a text with {EXPR} that is given to `on_log` instead of stopping
  bool once = false;          ///< deleted at its first stop
  bool enabled = true;
  std::uint64_t hits = 0;     ///< going forwards
  TROUPE_FIELDS(type, actor, sender, condition, watch, on_supervision, ignore, log, once, enabled, hits)
};

/// A message that waits.
struct Waiting {
  std::string type, sender;
  std::uint64_t sequence = 0;             ///< the sender's
  std::string kind;                       ///< tell, ask, reply, timer, …
  std::optional<std::uint64_t> n;         ///< where it is delivered, when the record has it
  TROUPE_FIELDS(type, sender, sequence, kind, n)
};

/// An ask without an answer yet.
struct OpenAsk {
  std::string to, type;
  bool is_awaited = false;                ///< the suspended handler stands at it
  std::string file;                       ///< of its co_await; empty: not awaited yet
  std::uint32_t line = 0;
  std::optional<std::uint64_t> since;     ///< the position at which it was asked
  TROUPE_FIELDS(to, type, is_awaited, file, line, since)
};

/// An actor at the present position.
struct ActorReport {
  std::string name, class_name;
  std::uint64_t deliveries = 0, sent = 0;
  bool is_stopped = false;
  std::string handling;                   ///< the type of the message whose handler is suspended; empty: none
  std::vector<OpenAsk> asks;
  std::vector<Waiting> mailbox;
  TROUPE_FIELDS(name, class_name, deliveries, sent, is_stopped, handling, asks, mailbox)
};

/// Moves through a recorded run, forwards and backwards, in the order of positions (actors/record/index.hpp). At position n every actor has
/// taken its deliveries below n and none from n on; count() is the end. The run is re-executed in processes of its own that are copied by fork
/// between deliveries, so that going back never executes again what it steps over. Nothing is written into the run.
/// One thread; `interrupt` may come from any, and from a signal handler.
class Debugger {
 public:
  /// Stands at position 0; a run that did not end in order at the end. Errors: those of the record; unsupported for another numerics contract.
  static Result<std::unique_ptr<Debugger>> open(const std::filesystem::path& run, DebuggerOptions options = {});
  ~Debugger();
  Debugger(const Debugger&) = delete;
  Debugger& operator=(const Debugger&) = delete;

  const record::Index& index() const;
  const std::filesystem::path& run() const;
  std::uint64_t position() const;
  std::uint64_t count() const { return index().count(); }
  /// After an assignment: moves go on in a branch in memory that no record checks; going back beyond its start leaves it.
  bool is_in_branch() const;
  std::uint64_t branch_start() const;

  Result<Stop> step(std::uint64_t count = 1);
  Result<Stop> reverse_step(std::uint64_t count = 1);
  Result<Stop> next();           ///< to this actor's next delivery
  Result<Stop> reverse_next();   ///< to this actor's previous one
  Result<Stop> go_on();          ///< continue
  Result<Stop> go_back();        ///< reverse-continue
  Result<Stop> go_to(std::uint64_t n);
  Result<Stop> go_to_step(std::uint64_t step);   ///< to the first delivery of a training step
  /// To the delivery of the first message that the delivery at the position sends (follow), or to the delivery that sent its message (cause).
  Result<Stop> follow();
  Result<Stop> cause();
  void interrupt();

  /// Errors: bad_input for an unknown type or actor (naming the nearest), or an expression that does not parse.
  Result<std::uint32_t> add(Breakpoint breakpoint);
  Result<void> change(std::uint32_t id, Breakpoint breakpoint);
  Result<void> remove(std::uint32_t id);
  const std::map<std::uint32_t, Breakpoint>& breakpoints() const;
  std::function<void(const std::string& line)> on_log;

  /// At the position. `actor`: its name; empty: the receiver of the delivery at the position.
  Result<Value> state(const std::string& actor = {});
  Result<Value> message();       ///< of the delivery at the position
  Result<ActorReport> report(const std::string& actor = {});
  Result<Value> environment();   ///< the job's settings
  /// EXPR, or an assignment `state.x = EXPR` (which opens a branch).
  Result<Value> evaluate(const std::string& text, const std::string& actor = {});

 private:
  struct State;
  explicit Debugger(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe::jobs::debug
