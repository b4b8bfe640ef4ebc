#include <benchmark/benchmark.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>

#include "actors/record/journal.hpp"
#include "actors/record/messages.hpp"
#include "actors/record/recorder.hpp"

// What recording a delivery costs: the bound is the digest of the message (XXH3, about 40 GB/s, over its encoding) and one copy of some 40
// bytes.
namespace troupe::record {
namespace {

class RecordingBench : public benchmark::Fixture {
 public:
  void SetUp(const benchmark::State& state) override {
    if (state.thread_index() != 0) return;
    std::string name = (std::filesystem::temp_directory_path() / "troupe-bench-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    auto journal = Journal::create(folder_ / "j", {.format = 0, .attempt = 1, .rank = 0, .run_id = "bench"});
    journal_ = std::move(*journal);
    recorder_ = std::make_unique<Recorder>(*journal_);
  }
  void TearDown(const benchmark::State& state) override {
    if (state.thread_index() != 0) return;
    recorder_.reset();
    journal_.reset();
    std::filesystem::remove_all(folder_);
  }

 protected:
  template <class T>
  void record(benchmark::State& state, const T& message) {
    EnvelopePtr envelope = make_envelope<T>(message);
    const std::string name = "actor/" + std::to_string(state.thread_index());
    envelope->origin.sender = actor_id("sender");
    std::uint64_t number = 0;
    for (auto _ : state) {
      envelope->origin.sequence = number;
      benchmark::DoNotOptimize(
          recorder_->on_delivery({.actor = actor_id(name), .number = number++, .envelope = envelope.get(), .actor_name = name}));
    }
    if (state.thread_index() != 0) return;
    (void)journal_->flush();
    const RecordingCost cost = journal_->cost();
    state.counters["bytes_per_message"] = static_cast<double>(cost.bytes) / static_cast<double>(cost.entries);
    state.counters["writer_ns_per_message"] = static_cast<double>(cost.in_writer.count()) / static_cast<double>(cost.entries);
  }

  std::filesystem::path folder_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Recorder> recorder_;
};

BENCHMARK_DEFINE_F(RecordingBench, SmallMessage)(benchmark::State& state) { record(state, Ping{.round = 7, .note = "some text"}); }
BENCHMARK_REGISTER_F(RecordingBench, SmallMessage)->Threads(1)->Threads(2)->Threads(4);

BENCHMARK_DEFINE_F(RecordingBench, FourMegabytes)(benchmark::State& state) {
  record(state, Pong{.values = std::vector<float>(1U << 20U, 0.5F)});
}
BENCHMARK_REGISTER_F(RecordingBench, FourMegabytes);

void DigestAlone(benchmark::State& state) {
  const Ping message{.round = 7, .note = "some text"};
  for (auto _ : state) benchmark::DoNotOptimize(content_digest(message));
}
BENCHMARK(DigestAlone);

}  // namespace
}  // namespace troupe::record

BENCHMARK_MAIN();
