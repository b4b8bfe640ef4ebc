#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
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

class PoolExecutor : public Executor {
 public:
  explicit PoolExecutor(unsigned threads) : threads_(threads) {}
  ~PoolExecutor() override { stop(); }

  void post(Runnable& runnable) override { asio::post(threads_.context(), [&runnable] { runnable.run(); }); }
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
  SteadyClock clock_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<PoolLane>> lanes_;
  Threads threads_;
  Threads timers_{1};
};

}  // namespace

std::unique_ptr<Executor> make_pool_executor(unsigned threads) {
  TROUPE_CHECK(threads > 0, "an executor runs on at least one thread");
  return std::make_unique<PoolExecutor>(threads);
}

}  // namespace troupe
