#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <mutex>
#include <thread>
#include <vector>

#include "actors/base/check.hpp"
#include "actors/clock.hpp"
#include "actors/executor.hpp"

namespace troupe {
namespace {

namespace asio = boost::asio;

/// An io_context with its threads.
class Threads {
 public:
  explicit Threads(unsigned count) : context_(static_cast<int>(count)), work_(context_.get_executor()) {
    for (unsigned i = 0; i < count; ++i) threads_.emplace_back([this] { context_.run(); });
  }
  ~Threads() { stop(); }
  void stop() {
    context_.stop();
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  asio::io_context& context() { return context_; }

 private:
  asio::io_context context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::vector<std::thread> threads_;
};

class PoolLane : public Lane {
 public:
  void post(Runnable& runnable) override { asio::post(threads_.context(), [&runnable] { runnable.run(); }); }
  void stop() { threads_.stop(); }

 private:
  Threads threads_{1};
};

/// What a pool's thread runs next, before it looks at the queue that all share: two actors that talk to each other stay on one thread, where a
/// message costs a hundredth of a wake-up. A timer takes out what waits there for longer than a tick, so a long handler delays nobody.
struct alignas(64) Slot {
  std::atomic<Runnable*> next{nullptr};
};
thread_local Slot* own_slot = nullptr;
thread_local const void* own_pool = nullptr;

class PoolExecutor : public Executor {
 public:
  explicit PoolExecutor(unsigned threads) : slots_(threads), threads_(threads) {}
  ~PoolExecutor() override { stop(); }

  void post(Runnable& runnable) override {
    if (own_pool != this) return share(runnable);
    if (Runnable* before = own_slot->next.exchange(&runnable)) share(*before);
    if (!is_watching_.exchange(true)) watch();
  }
  Time now() override { return clock_.now(); }

  std::unique_ptr<Lane> make_lane() override {
    auto state = std::make_shared<PoolLane>();
    const std::lock_guard lock(mutex_);
    lanes_.push_back(state);
    struct Handle : Lane {
      std::shared_ptr<PoolLane> lane;
      void post(Runnable& runnable) override { lane->post(runnable); }
    };
    auto handle = std::make_unique<Handle>();
    handle->lane = std::move(state);
    return handle;
  }

  void after(Time delay, std::function<void()> call) override {
    auto timer = std::make_unique<asio::steady_timer>(timers_.context(), delay);
    asio::steady_timer& armed = *timer;
    armed.async_wait([timer = std::move(timer), call = std::move(call)](const boost::system::error_code& code) {
      if (!code) call();
    });
  }

  void stop() override {
    timers_.stop();
    threads_.stop();
    std::vector<std::shared_ptr<PoolLane>> lanes;
    {
      const std::lock_guard lock(mutex_);
      lanes = lanes_;
    }
    for (const auto& lane : lanes) lane->stop();
  }

 private:
  static constexpr int kOwnTurns = 64;  ///< from the slot, before the shared queue has a turn
  static constexpr std::chrono::milliseconds kTick{1};

  void share(Runnable& runnable) {
    asio::post(threads_.context(), [this, &runnable] { run(runnable); });
  }

  void run(Runnable& first) {
    if (own_pool != this) {
      own_slot = &slots_[slots_taken_.fetch_add(1)];
      own_pool = this;
    }
    first.run();
    for (int turn = 0; turn < kOwnTurns; ++turn) {
      Runnable* next = own_slot->next.exchange(nullptr);
      if (next == nullptr) return;
      next->run();
    }
    if (Runnable* next = own_slot->next.exchange(nullptr)) share(*next);
  }

  // Takes out of every slot what was there a tick ago already. Ends when a tick finds nothing.
  void watch() {
    after(kTick, [this] {
      is_watching_.store(false);  // before the look: whoever still saw true has filled its slot already
      bool is_any = false;
      for (Slot& slot : slots_) {
        Runnable* waiting = slot.next.exchange(nullptr);
        if (waiting == nullptr) continue;
        is_any = true;
        share(*waiting);
      }
      if (is_any && !is_watching_.exchange(true)) watch();
    });
  }

  SteadyClock clock_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<PoolLane>> lanes_;
  std::vector<Slot> slots_;
  std::atomic<unsigned> slots_taken_{0};
  std::atomic<bool> is_watching_{false};
  Threads threads_;
  Threads timers_{1};
};

}  // namespace

std::unique_ptr<Executor> make_pool_executor(unsigned threads) {
  TROUPE_CHECK(threads > 0, "an executor runs on at least one thread");
  return std::make_unique<PoolExecutor>(threads);
}

}  // namespace troupe
