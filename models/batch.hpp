#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/tokenizer.hpp"

namespace troupe::models {

/// Consecutive positions of one sequence inside a batch. Rows of a batch are packed without padding: a span's rows follow the spans before it.
struct SequenceSpan {
  std::uint32_t sequence = 0;        ///< its slot in the KV cache; without a cache, only a label
  std::uint32_t first_position = 0;  ///< absolute; positions before it are in the cache
  std::uint32_t length = 0;          ///< rows; at least 1
};

/// What one forward pass computes: any mix of whole prompts, chunks of prompts and single decode steps.
struct Batch {
  std::vector<SequenceSpan> spans;
  std::vector<TokenId> tokens;  ///< [rows], in the order of the spans

  std::uint32_t rows() const { return static_cast<std::uint32_t>(tokens.size()); }
  void add(SequenceSpan span, std::span<const TokenId> ids) {
    spans.push_back(span);
    tokens.insert(tokens.end(), ids.begin(), ids.end());
  }
};

}  // namespace troupe::models
