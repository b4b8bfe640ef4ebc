// Messages within a process, beside raw Asio in the same run: medians of 7, one line a case.

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <functional>
#include <vector>

#include "actors/system.hpp"

namespace {

using namespace troupe;
namespace asio = boost::asio;

constexpr int kRounds = 7;

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}
double median_seconds(const std::function<void()>& work) {
  std::vector<double> all;
  for (int i = 0; i < kRounds; ++i) all.push_back(seconds_of(work));
  std::sort(all.begin(), all.end());
  return all[kRounds / 2];
}

/// 64 bytes.
struct Word {
  std::uint64_t words[8] = {};
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    for (std::uint64_t& word : words) archive& word;
  }
};
struct Count {
  using Reply = std::uint64_t;
  TROUPE_NO_FIELDS()
};
class Sink {
 public:
  void take(const Word&) { ++taken_; }
  std::uint64_t count(const Count&) { return taken_; }
  static void handlers(Handlers<Sink>& on) { on.message<&Sink::take>().message<&Sink::count>(); }

 private:
  std::uint64_t taken_ = 0;
};

/// Sends `count` words to `to`, `at_once` a turn.
struct Burst {
  using Reply = Done;
  ActorRef to;
  std::uint64_t count = 0;
  TROUPE_FIELDS(to, count)
};
class Source {
 public:
  void burst(Context& context, const Burst& message) {
    constexpr std::uint64_t kTurn = 1000;  // then others have a turn: a mailbox is a queue, not a store
    const std::uint64_t now = message.count < kTurn ? message.count : kTurn;
    for (std::uint64_t i = 0; i < now; ++i) context.tell<Word>(message.to, Word{});
    if (message.count > now) context.tell<Burst>(context.self(), message.to, message.count - now);
  }
  static void handlers(Handlers<Source>& on) { on.message<&Source::burst>(); }
};

/// A word that goes to and fro until `left` is 0.
struct Ball {
  std::uint64_t left = 0;
  std::uint64_t words[7] = {};
  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& left;
    for (std::uint64_t& word : words) archive& word;
  }
};
struct Serve {
  using Reply = Done;
  ActorRef to;
  std::uint64_t rounds = 0;
  TROUPE_FIELDS(to, rounds)
};
struct Return {
  using Reply = std::uint64_t;
  std::uint64_t value = 0;
  TROUPE_FIELDS(value)
};
class Player {
 public:
  explicit Player(ActorRef other) : other_(other) {}
  Player() = default;
  void serve(Context& context, const Serve& message) {
    other_ = message.to;
    context.tell<Ball>(other_, Ball{2 * message.rounds, {}});
  }
  void play(Context& context, const Ball& ball) {
    if (ball.left == 0) {
      finished.store(true);
      finished.notify_one();
      return;
    }
    context.tell<Ball>(other_, Ball{ball.left - 1, {}});
  }
  Task<> ask_rounds(Context& context, const Burst& message) {
    for (std::uint64_t i = 0; i < message.count; ++i) (void)co_await context.ask<Return>(message.to, i);
  }
  std::uint64_t back(const Return& message) { return message.value; }
  static void handlers(Handlers<Player>& on) { on.message<&Player::serve>().message<&Player::play>().message<&Player::ask_rounds>().message<&Player::back>(); }

  static inline std::atomic<bool> finished{false};

 private:
  ActorRef other_;
};

std::string name(const char* stem) {
  static int count = 0;
  return stem + std::to_string(count++);
}

const SpawnOptions kRoomy{.mailbox_capacity = 1U << 30};

void line(const char* what, double ours, double raw, const char* unit, const char* aim) { fmt::print("{:<44} {:>10.1f} {:<5} raw Asio {:>8.1f}  ratio {:>5.2f}  aim {}\n", what, ours, unit, raw, ours / raw, aim); }

double post_rate(unsigned threads, std::uint64_t count) {
  const double seconds = median_seconds([&] {
    asio::io_context context(static_cast<int>(threads));
    std::uint64_t taken = 0;
    for (std::uint64_t i = 0; i < count; ++i) asio::post(context, [&taken] { ++taken; });
    context.run();
  });
  return static_cast<double>(count) / seconds / 1e6;
}

double one_way_rate(unsigned threads, unsigned producers, std::uint64_t count) {
  const auto executor = make_pool_executor(threads);
  System system(*executor);
  const ActorRef sink = *system.spawn<Sink>(name("sink"), kRoomy);
  std::vector<ActorRef> sources;
  for (unsigned i = 0; i < producers; ++i) sources.push_back(*system.spawn<Source>(name("source")));
  std::uint64_t wanted = 0;
  const double seconds = median_seconds([&] {
    std::vector<std::future<Result<Done>>> sent;
    for (const ActorRef source : sources) sent.push_back(system.ask<Burst>(source, sink, count / producers));
    for (auto& each : sent) (void)each.get();
    wanted += count / producers * producers;
    while (*system.ask<Count>(sink).get() < wanted) {
    }
  });
  return static_cast<double>(count) / seconds / 1e6;
}

double round_trip_ns(bool asks) {
  constexpr std::uint64_t kTrips = 200'000;
  const auto executor = make_pool_executor(1);
  System system(*executor);
  const ActorRef a = *system.spawn<Player>(name("player"));
  const ActorRef b = *system.spawn<Player>(name("player"), a);
  const double seconds = median_seconds([&] {
    if (asks) return void(system.ask<Burst>(a, b, kTrips).get());
    Player::finished.store(false);
    (void)system.ask<Serve>(a, b, kTrips).get();
    Player::finished.wait(false);
  });
  return seconds / kTrips * 1e9;
}

double post_round_trip_ns() {
  constexpr std::uint64_t kTrips = 200'000;
  const double seconds = median_seconds([&] {
    asio::io_context context(1);
    std::uint64_t left = 2 * kTrips;
    std::function<void()> bounce = [&] {
      if (left-- > 0) asio::post(context, [&] { bounce(); });
    };
    asio::post(context, [&] { bounce(); });
    context.run();
  });
  return seconds / kTrips * 1e9;
}

void spawning() {
  constexpr int kActors = 100'000;
  const auto executor = make_pool_executor(1);
  System system(*executor);
  std::vector<std::string> names;
  for (int i = 0; i < kActors; ++i) names.push_back(fmt::format("s{}", i));
  const auto before = mallinfo2();
  const double seconds = seconds_of([&] {
    for (const std::string& each : names) (void)system.spawn<Sink>(each);
  });
  const auto after = mallinfo2();
  fmt::print("{:<44} {:>10.1f} ns    aim 500\n", "spawn", seconds / kActors * 1e9);
  fmt::print("{:<44} {:>10.0f} bytes aim 400\n", "an idle actor", static_cast<double>(after.uordblks - before.uordblks) / kActors);
}

}  // namespace

int main() {
  constexpr std::uint64_t kMessages = 1'000'000;
  const double post1 = post_rate(1, kMessages);
  line("one-way, one thread, M messages/s", one_way_rate(1, 1, kMessages), post1, "M/s", ">= 10");
  line("one-way, two threads, M messages/s", one_way_rate(2, 1, kMessages), post1, "M/s", ">= 8");
  line("100 producers, one consumer, one thread", one_way_rate(1, 100, kMessages), post1, "M/s", ">= 10");
  const double raw = post_round_trip_ns();
  line("round trip by tell", round_trip_ns(false), raw, "ns", "<= 120");
  line("round trip by ask", round_trip_ns(true), raw, "ns", "<= 120");
  spawning();
}
