#pragma once

#include <gtest/gtest.h>

#include "actors/record/messages.hpp"
#include "actors/record/recorder.hpp"
#include "actors/record/run_record.hpp"
#include "actors/record/scratch.hpp"

// Whole runs without a job: a driver on rank 0 asks a worker on rank 1 once a step.
namespace troupe::record {

inline RunInfo info() {
  RunInfo info;
  info.run_id = "run-7";
  info.configuration = "job = \"toy\"\nsteps = 3\n";
  info.build_id = "build";
  info.contract = "contract-1";
  info.facts = {{"host", "here"}};
  return info;
}

/// The deliveries of steps first+1 … last, as both ranks' observers see them.
class ToyRun {
 public:
  ToyRun(DeliveryObserver& driver_rank, DeliveryObserver& worker_rank) : driver_(driver_rank), worker_(worker_rank) {
    driver_.spawn("driver", Rank{0});
    worker_.spawn("worker", Rank{1});
  }
  /// The first error of any delivery.
  Result<void> start() { return driver_.deliver("driver", "", Ping{.round = 0, .note = "start"}); }
  Result<void> step(std::uint64_t step, std::string_view note = "work") {
    if (auto asked = worker_.deliver("worker", "driver", Ping{.round = step, .note = std::string(note)}, EnvelopeKind::ask); !asked)
      return asked;
    if (auto read = worker_.clock("worker", Time(static_cast<std::int64_t>(step) * 1000)); !read) return std::move(read).error();
    if (auto noted = worker_.note("worker", "logits", step * 7); !noted) return noted;
    if (auto shown = worker_.state("worker", Ping{.round = step, .note = "state"}); !shown) return shown;
    return driver_.deliver("driver", "worker", Pong{.values = {static_cast<float>(step)}}, EnvelopeKind::reply);
  }

 private:
  Scene driver_, worker_;
};

/// One attempt: steps start+1 … last, a checkpoint after each up to `checkpoints_until`. Without `reason` the journals end like those of a
/// killed process.
inline void record_attempt(RunRecord& record, std::uint64_t start, std::uint64_t last, std::uint64_t checkpoints_until,
                           std::optional<Error> reason) {
  const std::uint32_t attempt = *record.begin_attempt(start, 2);
  auto journal0 = *create_journal(record.folder(), "run-7", attempt, 0);
  auto journal1 = *create_journal(record.folder(), "run-7", attempt, 1);
  Recorder recorder0(*journal0), recorder1(*journal1);
  ToyRun run(recorder0, recorder1);
  ASSERT_TRUE(run.start());
  for (std::uint64_t step = start + 1; step <= last; ++step) {
    ASSERT_TRUE(run.step(step));
    recorder0.mark_step(step);
    recorder1.mark_step(step);
    if (step > checkpoints_until) continue;
    ASSERT_TRUE(record.add_checkpoint(step, to_value(step), "weights"));
  }
  if (!reason) return;
  ASSERT_TRUE(journal0->close(*reason));
  ASSERT_TRUE(journal1->close(*reason));
}

/// Steps 1 … 3, checkpoints of 0, 2 and 3.
inline void record_finished_run(const std::filesystem::path& folder) {
  RunRecord record = *RunRecord::create(folder, info());
  write_text(folder / "job.toml", "steps = 3");
  ASSERT_TRUE(record.add_file("job.toml"));
  ASSERT_TRUE(record.add_checkpoint(0, to_value(0), "weights"));
  record_attempt(record, 0, 3, 3, Error{ErrorCode::ok, "done"});
  ASSERT_TRUE(record.keep(2));
  ASSERT_TRUE(record.seal("{\"state\": \"done\"}"));
}

/// Killed in step 4, with checkpoints up to 2.
inline void record_killed_run(const std::filesystem::path& folder) {
  RunRecord record = *RunRecord::create(folder, info());
  ASSERT_TRUE(record.add_checkpoint(0, to_value(0), "weights"));
  record_attempt(record, 0, 4, 2, std::nullopt);
}

}  // namespace troupe::record
