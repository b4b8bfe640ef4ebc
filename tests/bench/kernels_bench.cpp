// The kernels as shares of what this machine does: linear (prefill), its weight gradient and attention of one core's FMA peak, linear
// (decode) of the memory's read bandwidth. Bound and kernel are measured in turns and in the thread's own time, so that neither the clock's
// drift nor other processes enter the share.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/kernels_bench.cpp"
#include <hwy/foreach_target.h>

#include "models/kernels/vectors.hpp"

HWY_BEFORE_NAMESPACE();
namespace troupe::models::HWY_NAMESPACE {

/// `steps` times 20 independent fmas: as many as hide the latency of two units. Returns the floating-point operations.
double multiply_and_add(std::size_t steps, float* result) {
  const Lanes d;
  constexpr std::size_t kChains = kLanes >= 16 ? 20 : 12;
  Vector sums[kChains];
#pragma GCC unroll 20
  for (std::size_t i = 0; i < kChains; ++i) sums[i] = hn::Set(d, static_cast<float>(i));
  const Vector a = hn::Set(d, 0.999F), b = hn::Set(d, *result);
  for (std::size_t step = 0; step < steps; ++step) {
#pragma GCC unroll 20
    for (std::size_t i = 0; i < kChains; ++i) sums[i] = hn::MulAdd(sums[i], a, b);
  }
#pragma GCC unroll 20
  for (std::size_t i = 1; i < kChains; ++i) sums[0] = hn::Add(sums[0], sums[i]);
  *result = hn::GetLane(sums[0]);
  return 2.0 * static_cast<double>(steps * kChains * kLanes);
}

/// Reads all of `size` floats, in 8 streams, like linear's segments.
float read_all(const float* from, std::size_t size) {
  const Lanes d;
  const std::size_t stream = size / 8;
  Vector sums[8];
#pragma GCC unroll 8
  for (std::size_t s = 0; s < 8; ++s) sums[s] = hn::Zero(d);
  for (std::size_t i = 0; i + 2 * kLanes <= stream; i += 2 * kLanes) {
#pragma GCC unroll 8
    for (std::size_t s = 0; s < 8; ++s) {
      sums[s] = hn::Add(sums[s], hn::Add(hn::LoadU(d, from + s * stream + i), hn::LoadU(d, from + s * stream + i + kLanes)));
    }
  }
#pragma GCC unroll 8
  for (std::size_t s = 1; s < 8; ++s) sums[0] = hn::Add(sums[0], sums[s]);
  return hn::GetLane(sums[0]);
}

}  // namespace troupe::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <benchmark/benchmark.h>
#include <ctime>
#include <fmt/format.h>
#include <functional>
#include <string>
#include <vector>

#include "models/kernels/attention.hpp"
#include "models/kernels/gradients.hpp"
#include "models/kernels/linear.hpp"
#include "models/numerics/processor.hpp"

namespace troupe::models {

HWY_EXPORT(multiply_and_add);
HWY_EXPORT(read_all);

namespace {

/// Seconds that this thread has computed.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Work {
  double amount = 0.0, seconds = 0.0;

  void add(const std::function<double()>& body) {
    const double start = thread_seconds();
    amount += body();
    seconds += thread_seconds() - start;
  }
  double rate() const { return amount / seconds; }
};

std::vector<float> values(std::size_t count) {
  std::vector<float> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<float>(static_cast<int>(i * 7919 % 2001) - 1000) * 1e-3F;
  return out;
}

double peak() {
  float result = 0.5F;
  const double flops = HWY_DYNAMIC_DISPATCH(multiply_and_add)(200'000, &result);
  benchmark::DoNotOptimize(result);
  return flops;
}

/// body returns the floating-point operations of one call.
void share_of_peak(benchmark::State& state, numerics::SimdTarget target, const std::function<double()>& body) {
  numerics::select_target(numerics::to_string(target)).value();
  Work work, bound;
  body();
  for (auto iteration : state) {
    Work now;
    bound.add(peak);
    while (now.seconds < 2e-3) now.add(body);
    work.amount += now.amount;
    work.seconds += now.seconds;
    state.SetIterationTime(now.seconds);
  }
  state.counters["GFLOP/s"] = work.rate() * 1e-9;
  state.counters["peak"] = bound.rate() * 1e-9;
  state.counters["share%"] = 100.0 * work.rate() / bound.rate();
}

void prefill(benchmark::State& state, numerics::SimdTarget target, std::size_t k, std::size_t n, std::size_t m) {
  ThreadPool pool;
  PackedMatrix b;
  b.pack(pool, values(n * k), n, SegmentCuts::of(k));
  const auto x = values(m * k);
  std::vector<float> y(m * n);
  share_of_peak(state, target, [&] {
    linear(pool, y, x, m, b);
    benchmark::DoNotOptimize(y.data());
    return 2.0 * static_cast<double>(m * n * k);
  });
}

void weight_gradient(benchmark::State& state, numerics::SimdTarget target, std::size_t k, std::size_t n, std::size_t length, std::size_t count) {
  ThreadPool pool;
  const auto dy = values(length * count * n), x = values(length * count * k);
  std::vector<SequenceRows> sequences;
  for (std::size_t i = 0; i < count; ++i) sequences.push_back({i * length, length});
  share_of_peak(state, target, [&] {
    const auto nodes = linear_gradient_weight(pool, dy, n, x, k, sequences, 0);
    benchmark::DoNotOptimize(nodes.data());
    return 2.0 * static_cast<double>(length * count * n * k);
  });
}

void causal_attention(benchmark::State& state, numerics::SimdTarget target, std::size_t length, bool is_backward) {
  ThreadPool pool;
  const AttentionShape shape{8, 4, 64, 0.125F, 0};
  const std::size_t kv = length * shape.kv_heads * shape.head_dim, size = length * shape.heads * shape.head_dim;
  std::vector<float> keys(key_value_floats(shape, length)), cached_values(keys.size()), out(size), dq(size), dk(kv), dv(kv);
  const auto q = values(size), k = values(kv), v = values(kv);
  std::vector<SoftmaxState> states(length * shape.heads);
  store_key_values(shape, keys.data(), cached_values.data(), k, v, 0, length);
  const AttentionSpan spans[] = {{0, 0, length, {keys.data(), cached_values.data()}}};
  attention(pool, shape, spans, out, q, states);
  const double pairs = static_cast<double>(shape.heads * shape.head_dim * length * (length + 1)) / 2;
  share_of_peak(state, target, [&] {
    if (is_backward) {
      attention_backward(pool, shape, spans, dq, dk, dv, q, out, q, states);
      return 10.0 * pairs;
    }
    attention(pool, shape, spans, out, q, states);
    return 4.0 * pairs;
  });
}

/// A token's pass over more weights than any cache holds.
void decode(benchmark::State& state, numerics::SimdTarget target, std::size_t rows) {
  constexpr std::size_t kWidth = 2048, kMatrices = 32;
  numerics::select_target(numerics::to_string(target)).value();
  ThreadPool pool;
  std::vector<PackedMatrix> matrices(kMatrices);
  const auto weights = values(kWidth * kWidth);
  for (PackedMatrix& matrix : matrices) matrix.pack(pool, weights, kWidth, SegmentCuts::of(kWidth));
  const auto x = values(rows * kWidth);
  std::vector<float> y(x.size());
  Work work, bound;
  for (auto iteration : state) {
    bound.add([&] {
      double bytes = 0.0;
      for (const PackedMatrix& matrix : matrices) {
        benchmark::DoNotOptimize(HWY_DYNAMIC_DISPATCH(read_all)(matrix.panel(0), matrix.bytes() / sizeof(float)));
        bytes += static_cast<double>(matrix.bytes());
      }
      return bytes;
    });
    const double before = work.seconds;
    work.add([&] {
      double bytes = 0.0;
      for (const PackedMatrix& matrix : matrices) {
        linear(pool, y, x, rows, matrix);
        bytes += static_cast<double>(matrix.bytes());
      }
      return bytes;
    });
    state.SetIterationTime(work.seconds - before);
  }
  state.counters["GB/s"] = work.rate() * 1e-9;
  state.counters["read"] = bound.rate() * 1e-9;
  state.counters["share%"] = 100.0 * work.rate() / bound.rate();
}

benchmark::internal::Benchmark* medians(benchmark::internal::Benchmark* bench, int iterations) {
  return bench->UseManualTime()->Iterations(iterations)->Repetitions(5)->ReportAggregatesOnly();
}

void register_all(numerics::SimdTarget target) {
  const std::string_view on = numerics::to_string(target);
  for (const std::size_t width : {256U, 896U, 2048U}) {
    for (const std::size_t m : {64U, 128U, 256U}) {
      const std::string name = fmt::format("linear_prefill/{0}x{0}/rows:{1}/{2}", width, m, on);
      medians(benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { prefill(state, target, width, width, m); }), 10);
    }
  }
  for (const std::size_t length : {16U, 64U, 256U}) {
    const std::string name = fmt::format("weight_gradient/896x896/{}x{}/{}", 1024 / length, length, on);
    medians(benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { weight_gradient(state, target, 896, 896, length, 1024 / length); }), 4);
  }
  for (const std::size_t length : {64U, 1024U}) {
    for (const bool is_backward : {false, true}) {
      const std::string name = fmt::format("attention{}/{}/{}", is_backward ? "_backward" : "", length, on);
      medians(benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { causal_attention(state, target, length, is_backward); }), 4);
    }
  }
  for (const std::size_t rows : {1U, 4U, 8U, 12U}) {
    const std::string name = fmt::format("linear_decode/rows:{}/{}", rows, on);
    medians(benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) { decode(state, target, rows); }), 3);
  }
}

}  // namespace
}  // namespace troupe::models

int main(int argc, char** argv) {
  for (const auto target : troupe::models::numerics::supported_targets()) troupe::models::register_all(target);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
#endif
