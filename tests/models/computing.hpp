#pragma once

// Ways to compute the same logits: whole, in chunks, one token at a time, beside others, on shards.

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

#include "models/model.hpp"
#include "models/reference.hpp"

namespace troupe::models::testing {

using Tokens = std::vector<TokenId>;

/// Logits [rows of the batch, vocabulary] of all rows.
inline Activation logits_of(Model& model, const Batch& batch, KvCache* cache, Tape* tape = nullptr) {
  std::vector<std::uint32_t> rows(batch.rows());
  std::iota(rows.begin(), rows.end(), 0U);
  Activation hidden, part, whole;
  model.forward(batch, cache, rows, hidden, tape).value();
  model.project(hidden, part);
  model.gather_logits(part, whole).value();
  return whole;
}

/// The logits of one sequence computed in chunks of that many positions.
inline Activation in_chunks(Model& model, const Tokens& tokens, std::size_t chunk) {
  KvCache cache = model.make_cache(1, static_cast<std::uint32_t>(tokens.size()));
  Activation all;
  for (std::size_t at = 0; at < tokens.size(); at += chunk) {
    Batch batch;
    const auto part = std::span(tokens).subspan(at, std::min(chunk, tokens.size() - at));
    batch.add({0, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(part.size())}, part);
    const Activation logits = logits_of(model, batch, &cache);
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

inline Activation alone(Model& model, const Tokens& tokens) {
  Batch batch;
  batch.add({0, 0, static_cast<std::uint32_t>(tokens.size())}, tokens);
  return logits_of(model, batch, nullptr);
}

/// Equal bits, or the first element that differs.
inline ::testing::AssertionResult same_bits(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return ::testing::AssertionFailure() << a.size() << " and " << b.size() << " elements";
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return ::testing::AssertionFailure() << "element " << i << ": " << a[i] << " and " << b[i];
  }
  return ::testing::AssertionSuccess();
}

/// Calls body(model of member i) on a thread for each of `degree` shards; body returns what is compared, of member 0 and all others alike.
template <class T>
std::vector<T> on_shards(const ModelConfig& config, const Weights& weights, std::uint32_t degree, const std::function<T(Model&)>& body) {
  auto communicators = collectives::local_communicators(degree);
  std::vector<T> results(degree);
  std::vector<std::thread> members;
  for (std::uint32_t i = 0; i < degree; ++i) {
    members.emplace_back([&, i] {
      ThreadPool pool(1);
      const auto model = Model::create(config, weights, pool, *communicators[i]).value();
      results[i] = body(*model);
    });
  }
  for (std::thread& member : members) member.join();
  return results;
}

/// Prompts of 1 to 12 tokens.
inline std::vector<Tokens> short_prompts(std::uint32_t vocabulary) {
  std::vector<Tokens> prompts;
  for (std::uint32_t length = 1; length <= 12; ++length) {
    Tokens tokens;
    for (std::uint32_t i = 0; i < length; ++i) tokens.push_back((length * 7 + i * i * 5 + 3) % vocabulary);
    prompts.push_back(tokens);
  }
  return prompts;
}

}  // namespace troupe::models::testing
