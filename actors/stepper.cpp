#include "actors/stepper.hpp"

#include <thread>
#include <utility>

namespace troupe {

class Stepper::StepperLane : public Lane {
 public:
  explicit StepperLane(Stepper& stepper) : stepper_(stepper) {}
  void post(Runnable& runnable) override {
    const std::lock_guard lock(stepper_.mutex_);
    stepper_.blocking_.push_back(&runnable);
  }

 private:
  Stepper& stepper_;
};

Stepper::Stepper() = default;
Stepper::~Stepper() = default;

void Stepper::post(Runnable& runnable) {
  const std::lock_guard lock(mutex_);
  ready_.push_back(&runnable);
}

std::unique_ptr<Lane> Stepper::make_lane() { return std::make_unique<StepperLane>(*this); }

void Stepper::after(Time delay, std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  timers_.emplace(std::pair(now_ + delay, timers_made_++), std::move(call));
}

std::vector<Runnable*> Stepper::take(std::vector<Runnable*>& from) {
  const std::lock_guard lock(mutex_);
  return std::exchange(from, {});
}

void Stepper::run() {
  while (!stopped_) {
    if (const std::vector<Runnable*> ready = take(ready_); !ready.empty()) {
      for (Runnable* each : ready) each->run();
      continue;
    }
    const std::vector<Runnable*> blocking = take(blocking_);
    if (blocking.empty()) return;
    std::vector<std::thread> threads;
    for (std::size_t i = 1; i < blocking.size(); ++i) threads.emplace_back([each = blocking[i]] { each->run(); });
    blocking[0]->run();
    for (std::thread& thread : threads) thread.join();
  }
}

bool Stepper::run_next_timer() {
  std::function<void()> call;
  {
    const std::lock_guard lock(mutex_);
    if (timers_.empty()) return false;
    auto next = timers_.extract(timers_.begin());
    now_ = next.key().first;
    call = std::move(next.mapped());
  }
  call();
  return true;
}

}  // namespace troupe
