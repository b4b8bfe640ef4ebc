#pragma once

// The actors that the tests of the runtime use.

#include <stdexcept>
#include <string>
#include <vector>

#include "actors/pool.hpp"
#include "actors/system.hpp"

namespace troupe::testing {

struct Add {
  using Reply = int;
  int amount = 0;
  TROUPE_FIELDS(amount)
};
struct Fail {
  std::string why;
  TROUPE_FIELDS(why)
};
struct Total {
  using Reply = int;
  TROUPE_NO_FIELDS()
};

class Counter {
 public:
  Counter() = default;
  explicit Counter(int start) : total_(start) {}
  int add(const Add& message) { return total_ += message.amount; }
  int total(const Total&) { return total_; }
  void fail(const Fail& message) { throw std::runtime_error(message.why); }
  static void handlers(Handlers<Counter>& on) { on.message<&Counter::add>().message<&Counter::total>().message<&Counter::fail>(); }
  TROUPE_FIELDS(total_)

 private:
  int total_ = 0;
};

/// Asks `to` for `rounds` sums, one after the other.
struct Drive {
  using Reply = std::vector<int>;
  ActorRef to;
  int rounds = 0;
  TROUPE_FIELDS(to, rounds)
};
/// Spawns a Counter on a rank and adds to it.
struct SpawnThere {
  using Reply = int;
  Rank rank{};
  std::string name;
  TROUPE_FIELDS(rank, name)
};
/// Asks `to` within a deadline and gives the error's code, 0 for none.
struct AskWithin {
  using Reply = int;
  ActorRef to;
  std::int64_t deadline_ns = 0;
  TROUPE_FIELDS(to, deadline_ns)
};

class Driver {
 public:
  Task<Result<std::vector<int>>> drive(Context& context, const Drive& message) {
    std::vector<int> sums;
    for (int i = 1; i <= message.rounds; ++i) {
      Result<int> sum = co_await context.ask<Add>(message.to, i);
      if (!sum) co_return sum.error();
      sums.push_back(*sum);
    }
    co_return sums;
  }
  Task<Result<int>> spawn_there(Context& context, const SpawnThere& message) {
    Result<ActorRef> counter = co_await context.spawn_on<Counter>(message.rank, message.name, SpawnOptions{}, 40);
    if (!counter) co_return counter.error();
    co_return co_await context.ask<Add>(*counter, 2);
  }
  Task<int> ask_within(Context& context, const AskWithin& message) {
    Result<int> sum = co_await context.ask_within<Add>(Time{message.deadline_ns}, message.to, 1);
    co_return sum ? 0 : static_cast<int>(sum.error().code);
  }
  static void handlers(Handlers<Driver>& on) { on.message<&Driver::drive>().message<&Driver::spawn_there>().message<&Driver::ask_within>(); }
};

/// Never answers: waits for an actor that does not answer either.
struct Wait {
  using Reply = int;
  TROUPE_NO_FIELDS()
};
class Sleeper {
 public:
  Task<int> add(Context& context, const Add&) {
    Result<int> never = co_await context.ask_within<Wait>(Time{std::int64_t{3600'000'000'000} * 24}, context.self());
    co_return never ? *never : -1;
  }
  int wait(const Wait&) { return 0; }
  static void handlers(Handlers<Sleeper>& on) { on.message<&Sleeper::add>().message<&Sleeper::wait>(); }
};

/// Spawns children with a policy, and notes what it hears.
struct SpawnChildren {
  int count = 0;
  SpawnOptions options;
  TROUPE_FIELDS(count, options)
};
struct Watch {
  ActorRef other;
  bool linked = false;
  TROUPE_FIELDS(other, linked)
};
struct Heard {
  using Reply = std::vector<std::string>;
  TROUPE_NO_FIELDS()
};
class Parent {
 public:
  void spawn_children(Context& context, const SpawnChildren& message) {
    for (int i = 0; i < message.count; ++i) {
      const std::string name = std::string(context.name()) + "/" + std::to_string(i);
      if (Result<ActorRef> child = context.spawn<Counter>(name, message.options, 0); !child) throw ErrorException(child.error());
    }
  }
  void watch(Context& context, const Watch& message) { message.linked ? context.link(message.other) : context.monitor(message.other); }
  void down(const Down& down) { heard_.push_back(std::string(to_string(down.reason.code)) + ": " + down.reason.detail); }
  void undeliverable(const Undeliverable& what) { heard_.push_back("undeliverable: " + what.type); }
  std::vector<std::string> heard(const Heard&) { return heard_; }
  static void handlers(Handlers<Parent>& on) {
    on.message<&Parent::spawn_children>().message<&Parent::watch>().message<&Parent::down>().message<&Parent::undeliverable>().message<&Parent::heard>().message<&Parent::told>();
  }
  /// Tells `to` something, without waiting.
  struct Tell {
    ActorRef to;
    int times = 1;
    TROUPE_FIELDS(to, times)
  };
  void told(Context& context, const Tell& message) {
    for (int i = 0; i < message.times; ++i) context.tell<Add>(message.to, 1);
  }
  TROUPE_FIELDS(heard_)

 private:
  std::vector<std::string> heard_;
};

/// Two asks to `to` under way; stops at the first error.
struct AskTwice {
  ActorRef to;
  TROUPE_FIELDS(to)
};
class GivesUp {
 public:
  Task<> ask_twice(Context& context, const AskTwice& message) {
    Ask<int> first = context.ask<Add>(message.to, 1);
    Ask<int> second = context.ask<Add>(message.to, 1);
    const Result<int> sum = co_await first;
    if (!sum) {
      context.stop();
      co_return;
    }
    (void)co_await second;
  }
  static void handlers(Handlers<GivesUp>& on) { on.message<&GivesUp::ask_twice>(); }
};

/// Spawns a Counter that it supervises, and waits for what makes it fail.
struct Provoke {
  TROUPE_NO_FIELDS()
};
class Boss {
 public:
  Task<> provoke(Context& context, const Provoke&) {
    const Result<ActorRef> child = context.spawn<Counter>(std::string(context.name()) + "/child", 0);
    (void)co_await context.ask<Fail>(*child, "on purpose");
  }
  static void handlers(Handlers<Boss>& on) { on.message<&Boss::provoke>(); }
};

}  // namespace troupe::testing
