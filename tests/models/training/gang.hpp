#pragma once

// Gangs of trainers in threads, the reference's training batch, and comparison of results by bits.

#include <gtest/gtest.h>

#include <bit>
#include <functional>
#include <thread>

#include "models/cases.hpp"
#include "models/computing.hpp"
#include "models/training/trainer.hpp"

namespace troupe::models::testing {

/// The layout of a gang and how its members compute.
struct Layout {
  std::uint32_t tensor = 1;
  std::uint32_t data = 1;
  std::size_t threads = 1;
  std::uint32_t micro_batch = 64;
};

inline std::ostream& operator<<(std::ostream& out, const Layout& l) {
  return out << "tensor " << l.tensor << ", data " << l.data << ", threads " << l.threads << ", micro-batch " << l.micro_batch;
}

/// body(trainer, micro_batch) on a thread for each member; what all return.
template <class T>
std::vector<T> on_gang(const ModelConfig& config, const Weights& weights, const OptimizerSettings& settings, const Layout& layout,
                       const std::function<T(Trainer&, std::uint32_t)>& body) {
  std::vector<std::vector<std::unique_ptr<collectives::Communicator>>> shards, replicas;  // [data][tensor], [tensor][data]
  for (std::uint32_t d = 0; d < layout.data; ++d) shards.push_back(collectives::local_communicators(layout.tensor));
  for (std::uint32_t t = 0; t < layout.tensor; ++t) replicas.push_back(collectives::local_communicators(layout.data));
  std::vector<T> results(layout.tensor * layout.data);
  std::vector<std::thread> members;
  for (std::uint32_t i = 0; i < results.size(); ++i) {
    members.emplace_back([&, i] {
      const std::uint32_t t = i % layout.tensor, d = i / layout.tensor;
      ThreadPool pool(layout.threads);
      const auto trainer = Trainer::create(config, weights, settings, pool, shards[d][t].get(), replicas[t][d].get()).value();
      results[i] = body(*trainer, layout.micro_batch);
    });
  }
  for (std::thread& member : members) member.join();
  return results;
}

inline ::testing::AssertionResult same_weights(const Weights& a, const Weights& b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " and " << b.size() << " tensors";
  for (const auto& [name, tensor] : a) {
    const auto same = same_bits(tensor.data, b.at(name).data);
    if (!same) return ::testing::AssertionFailure() << name << ": " << same.message();
  }
  return ::testing::AssertionSuccess();
}

inline ::testing::AssertionResult same_metrics(const StepMetrics& a, const StepMetrics& b) {
  if (a.values.size() != b.values.size()) return ::testing::AssertionFailure() << "different names";
  for (const auto& [name, value] : a.values) {
    if (std::bit_cast<std::uint64_t>(value) != std::bit_cast<std::uint64_t>(b.values.at(name))) {
      return ::testing::AssertionFailure() << name << ": " << value << " and " << b.values.at(name);
    }
  }
  return ::testing::AssertionSuccess();
}

inline TrainingSequence counted(const Tokens& tokens) {
  TrainingSequence out{.tokens = tokens, .mask = std::vector<std::uint8_t>(tokens.size(), 1)};
  out.mask[0] = 0;
  return out;
}

/// The configuration of a family with odd sizes; heads 8.
inline ModelConfig training_config(Family family, std::uint32_t kv_heads = 4) {
  ModelConfig config = tiny_config();
  config.family = family;
  config.kv_heads = kv_heads;
  config.qkv_bias = family == Family::qwen2;
  config.output_bias = family == Family::llama;
  config.qk_norm = family == Family::qwen3;
  config.tied_embeddings = family != Family::llama;
  config.initializer_range = 0.2;
  return config;
}

/// Initial weights with norms and biases far from 1 and 0.
inline Weights training_weights(const ModelConfig& config) {
  Weights weights = initial_weights(config, 5);
  for (auto& [name, tensor] : weights) {
    for (std::size_t i = 0; tensor.shape.size() == 1 && i < tensor.data.size(); ++i) tensor.data[i] += 0.1F * static_cast<float>(i % 7) - 0.2F;
  }
  return weights;
}

}  // namespace troupe::models::testing
