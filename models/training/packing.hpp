#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/training/sequences.hpp"

namespace troupe::models {

/// Which examples each step learns from. Draws are counted over the whole run: step s (from 0) takes draws [s · batch, (s + 1) · batch), and
/// draw d is example d mod count of epoch d / count's shuffle. A function of (count, seed, step, batch) alone, so a run resumes anywhere.
/// Steps cross from one epoch into the next; no example is left out.
class ExampleOrder {
 public:
  /// Precondition: 0 < count ≤ 2^32.
  ExampleOrder(std::uint64_t count, std::uint64_t seed);

  /// The example of one draw; O(count) for the first of an epoch.
  std::uint64_t example(std::uint64_t draw);
  std::vector<std::uint64_t> step(std::uint64_t step, std::uint32_t batch);

 private:
  std::uint64_t count_, seed_;
  std::uint64_t epoch_ = 0;
  std::vector<std::uint32_t> order_;  ///< of epoch_; empty before the first draw
};

/// An order of a batch in which contiguous ranges of it (its halves, their halves, …) hold about as many tokens each: longest first, dealt
/// to the two halves in turns of 1, 2, 2, …. A pure function of the lengths: the trainer computes every batch in this order.
std::vector<std::size_t> balanced_order(std::span<const std::size_t> lengths);

/// prompt + response with the response's tokens counted.
TrainingSequence instruction(std::span<const TokenId> prompt, std::span<const TokenId> response);

/// A stream of text cut into sequences of `length` tokens, all counted but each first; each begins with its predecessor's last token, so
/// every token but the stream's first is learnt once. A rest of one token is dropped. Precondition: length > 1.
std::vector<TrainingSequence> cut_stream(std::span<const TokenId> stream, std::size_t length);

}  // namespace troupe::models
