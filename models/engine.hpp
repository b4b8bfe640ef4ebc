#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "actors/base/error.hpp"
#include "actors/base/fields.hpp"
#include "models/model.hpp"
#include "models/sampler.hpp"

namespace troupe::models {

/// n samples of one prompt.
struct Request {
  std::vector<TokenId> prompt;  ///< at least one token
  std::uint64_t draw = 0;       ///< names the prompt in random keys: the global draw counter, step × prompts + index
  std::uint32_t n = 1;
  std::uint32_t max_tokens = 16;
  Sampling sampling;
  bool ignore_eos = false;
  TROUPE_FIELDS(prompt, draw, n, max_tokens, sampling, ignore_eos)
};

enum class FinishReason : std::uint8_t { stop = 0, length = 1 };
std::string_view to_string(FinishReason reason);  ///< "stop", "length"

struct Completion {
  std::uint32_t prompt = 0;     ///< index of the request
  std::uint32_t sample = 0;
  std::vector<TokenId> tokens;  ///< generated, with the end token
  std::vector<float> logprobs;  ///< one a token
  FinishReason reason = FinishReason::stop;
  TROUPE_FIELDS(prompt, sample, tokens, logprobs, reason)
};

/// One sequence's choice in one step, for the record.
struct StepLogits {
  std::uint64_t draw = 0;
  std::uint32_t sample = 0;
  std::uint32_t position = 0;  ///< in the sequence, of the token that these logits chose
  std::uint64_t digest = 0;    ///< XXH3 of the logits [vocab_size], NaN canonical
};

struct EngineOptions {
  std::uint32_t batch_max = 8;   ///< most sequences computed at once
  std::uint32_t rows_max = 512;  ///< most rows computed at once: longer prompts come in chunks, logits of scored rows in parts
};

/// Generates and scores with continuous batching: each step, waiting samples join up to batch_max and finished ones leave. What a sample
/// gives depends on its request and its place (draw, sample) alone. With tensor parallelism every member makes the same calls with the
/// same requests. Memory of the KV cache: batch_max · the longest prompt + max_tokens. One thread at a time; blocks.
class Engine {
 public:
  Engine(Model& model, EngineOptions options);
  ~Engine();

  /// After each step that chose tokens, ascending by (draw, sample). The digests are computed only when it is given.
  using OnStep = std::function<void(std::span<const StepLogits>)>;

  /// Completions ordered by (prompt, sample). Errors: bad_input naming the request (empty prompt, a token beyond the vocabulary, no room
  /// for prompt + max_tokens, a bad setting) before anything is computed; a collective's.
  Result<std::vector<Completion>> generate(std::span<const Request> requests, const OnStep& on_step = {});

  /// For each sequence of n tokens the n − 1 log-probabilities of tokens 1 … n − 1 given those before: the bits that generate gives at
  /// `temperature` (0 as 1). Errors: bad_input naming the sequence (empty, a token beyond the vocabulary, too long).
  Result<std::vector<std::vector<float>>> score(std::span<const std::vector<TokenId>> sequences, float temperature = 1.0F);

 private:
  class Generation;
  Result<void> score_batch(std::span<const std::vector<TokenId>> sequences, float temperature, std::vector<std::vector<float>>& out);

  Model& model_;
  EngineOptions options_;
  std::optional<KvCache> cache_;  ///< kept from call to call while it is large enough; never read across calls
};

}  // namespace troupe::models
