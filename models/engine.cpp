#include "models/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "actors/base/check.hpp"
#include "actors/base/digest.hpp"

namespace troupe::models {
namespace {

Result<void> check_tokens(const ModelConfig& config, std::string_view what, std::size_t index, std::span<const TokenId> tokens) {
  if (tokens.empty()) return Error{ErrorCode::bad_input, fmt::format("{} {}: want at least one token, got none", what, index)};
  for (const TokenId id : tokens) {
    if (id >= config.vocab_size) {
      return Error{ErrorCode::bad_input, fmt::format("{} {}: token id: want below the vocabulary's size {}, got {}", what, index, config.vocab_size, id)};
    }
  }
  return {};
}

Result<void> check_request(const ModelConfig& config, std::size_t index, const Request& request) {
  if (Result<void> checked = check_tokens(config, "prompt", index, request.prompt); !checked) return checked;
  const auto refuse = [&](std::string detail) { return Error{ErrorCode::bad_input, fmt::format("prompt {}: {}", index, detail)}; };
  if (request.n == 0) return refuse("n: want at least 1, got 0");
  if (request.max_tokens == 0) return refuse("max_tokens: want at least 1, got 0");
  const std::uint64_t length = std::uint64_t{request.max_tokens} + request.prompt.size();
  if (length > config.positions_max) {
    return refuse(fmt::format("want prompt and max_tokens within max_position_embeddings {}, got {} + {}", config.positions_max, request.prompt.size(), request.max_tokens));
  }
  if (Result<void> checked = check_sampling(request.sampling); !checked) return refuse(checked.error().detail);
  return {};
}

std::uint64_t digest_of(std::span<const float> logits) {
  std::vector<float> canonical(logits.begin(), logits.end());
  for (float& logit : canonical) {
    if (std::isnan(logit)) logit = std::numeric_limits<float>::quiet_NaN();
  }
  return digest64(std::as_bytes(std::span(canonical)));
}

}  // namespace

std::string_view to_string(FinishReason reason) { return reason == FinishReason::stop ? "stop" : "length"; }

/// One call of generate. A sample is computed in a slot of the cache, through these states:
///   prefilling  its prompt goes in, in chunks
///   following   another sample of the same prompt prefills; its keys and values are copied when it is done
///   decoding    one token a step
class Engine::Generation {
 public:
  Generation(Model& model, KvCache& cache, const EngineOptions& options, std::span<const Request> requests, const OnStep& on_step)
      : model_(model), cache_(cache), options_(options), requests_(requests), on_step_(on_step), groups_(requests.size()) {
    for (std::uint32_t slot = options.batch_max; slot > 0; --slot) free_.push_back(slot - 1);
  }

  Result<std::vector<Completion>> run() {
    while (admit(), !running_.empty()) {
      if (Result<void> stepped = step(); !stepped) return stepped.error();
      report();
      std::erase_if(running_, [](const Sequence& sequence) { return sequence.state == State::finished; });
      forget_logits();
    }
    std::ranges::sort(done_, {}, [](const Completion& completion) { return std::pair(completion.prompt, completion.sample); });
    return std::move(done_);
  }

 private:
  enum class State { prefilling, following, decoding, finished };
  struct Sequence {
    State state = State::prefilling;
    std::uint32_t slot = 0;
    std::uint32_t stored = 0;  ///< positions whose keys and values are in the cache
    Completion completion;
  };
  /// What the samples of a prompt share once one of them has prefilled.
  struct Group {
    std::uint32_t admitted = 0;
    std::vector<float> logits;  ///< of the prompt's last token, until every sample has been admitted
  };
  /// A row of logits, and the sequences that choose from it.
  struct Due {
    std::span<const float> logits;
    std::size_t sequence;
  };

  const Request& request(const Sequence& sequence) const { return requests_[sequence.completion.prompt]; }

  /// Fills free slots with waiting samples, in order.
  void admit() {
    while (!free_.empty() && next_ < requests_.size()) {
      Group& group = groups_[next_];
      Sequence sequence;
      sequence.slot = free_.back();
      free_.pop_back();
      sequence.completion.prompt = next_;
      sequence.completion.sample = group.admitted++;
      const auto sibling = std::ranges::find_if(running_, [&](const Sequence& other) { return other.completion.prompt == next_; });
      if (sibling != running_.end()) sequence.state = State::following;
      running_.push_back(std::move(sequence));
      if (group.admitted == requests_[next_].n) ++next_;
    }
  }

  /// The rows of this step: every decoding sequence's last token, then prompts as far as there is room.
  void fill(std::vector<std::uint32_t>& rows, std::vector<std::size_t>& owners) {
    batch_.spans.clear();
    batch_.tokens.clear();
    const auto add = [&](std::size_t index, std::span<const TokenId> tokens, bool last) {
      Sequence& sequence = running_[index];
      batch_.add({sequence.slot, sequence.stored, static_cast<std::uint32_t>(tokens.size())}, tokens);
      sequence.stored += static_cast<std::uint32_t>(tokens.size());
      if (!last) return;
      rows.push_back(batch_.rows() - 1);
      owners.push_back(index);
    };
    for (std::size_t i = 0; i < running_.size(); ++i) {
      // One that followed in this step has no token yet: it chooses from its group's logits.
      const std::vector<TokenId>& chosen = running_[i].completion.tokens;
      if (running_[i].state == State::decoding && !chosen.empty()) add(i, std::span(chosen).last(1), true);
    }
    for (std::size_t i = 0; i < running_.size(); ++i) {
      if (running_[i].state != State::prefilling || batch_.rows() >= options_.rows_max) continue;
      const std::span<const TokenId> left = std::span(request(running_[i]).prompt).subspan(running_[i].stored);
      const std::size_t length = std::min<std::size_t>(left.size(), options_.rows_max - batch_.rows());
      add(i, left.first(length), length == left.size());
    }
  }

  Result<void> step() {
    std::vector<std::uint32_t> rows;
    std::vector<std::size_t> owners;
    std::vector<Due> due;
    // A late sample of a prompt that a running one holds takes what that one stored, and the logits that were kept.
    for (std::size_t i = 0; i < running_.size(); ++i) follow(i, due);
    fill(rows, owners);
    if (!batch_.spans.empty()) {
      if (Result<void> computed = model_.forward(batch_, &cache_, rows, hidden_); !computed) return computed;
    }
    if (!rows.empty()) {
      model_.project(hidden_, part_);
      if (Result<void> gathered = model_.gather_logits(part_, logits_); !gathered) return gathered;
    }
    const std::size_t vocabulary = model_.config().vocab_size;
    for (std::size_t i = 0; i < owners.size(); ++i) {
      const std::span<const float> row = std::span(logits_).subspan(i * vocabulary, vocabulary);
      Sequence& sequence = running_[owners[i]];
      if (sequence.state == State::prefilling) {
        if (request(sequence).n > 1) groups_[sequence.completion.prompt].logits.assign(row.begin(), row.end());
        sequence.state = State::decoding;
        for (std::size_t other = 0; other < running_.size(); ++other) follow(other, due);
      }
      due.push_back({row, owners[i]});
    }
    choose(due);
    return {};
  }

  /// When sample i follows one that has prefilled: copies its prompt, and has it choose.
  void follow(std::size_t i, std::vector<Due>& due) {
    Sequence& sequence = running_[i];
    if (sequence.state != State::following) return;
    const std::uint32_t prompt = sequence.completion.prompt;
    const auto source = std::ranges::find_if(running_, [&](const Sequence& other) { return other.completion.prompt == prompt && other.state == State::decoding; });
    if (source == running_.end()) {
      const bool led = std::ranges::any_of(running_, [&](const Sequence& other) { return other.completion.prompt == prompt && other.state == State::prefilling; });
      if (!led) sequence.state = State::prefilling;  // the one it followed has finished
      return;
    }
    sequence.stored = static_cast<std::uint32_t>(request(sequence).prompt.size());
    cache_.copy(source->slot, sequence.slot, sequence.stored);
    sequence.state = State::decoding;
    due.push_back({groups_[prompt].logits, i});
  }

  /// Every due sequence chooses its next token; rows are shared among threads, each row one thread's.
  void choose(const std::vector<Due>& due) {
    std::vector<Sampled> sampled(due.size());
    std::vector<std::uint64_t> digests(due.size());
    model_.pool().parallel_ranges(due.size(), 1, [&](std::size_t begin, std::size_t end) {
      Sampler sampler;
      for (std::size_t i = begin; i < end; ++i) {
        const Sequence& sequence = running_[due[i].sequence];
        const Request& asked = request(sequence);
        sampled[i] = sampler.sample(due[i].logits, asked.sampling, {asked.draw, sequence.completion.sample, sequence.stored});
        if (on_step_) digests[i] = digest_of(due[i].logits);
      }
    });
    for (std::size_t i = 0; i < due.size(); ++i) {
      Sequence& sequence = running_[due[i].sequence];
      if (on_step_) steps_.push_back({request(sequence).draw, sequence.completion.sample, sequence.stored, digests[i]});
      append(sequence, sampled[i]);
    }
  }

  void append(Sequence& sequence, Sampled sampled) {
    Completion& completion = sequence.completion;
    const Request& asked = request(sequence);
    completion.tokens.push_back(sampled.token);
    completion.logprobs.push_back(sampled.logprob);
    const std::vector<std::uint32_t>& ends = model_.config().eos_token_ids;
    const bool stop = !asked.ignore_eos && std::ranges::find(ends, sampled.token) != ends.end();
    if (!stop && completion.tokens.size() < asked.max_tokens) return;
    completion.reason = stop ? FinishReason::stop : FinishReason::length;
    sequence.state = State::finished;
    free_.push_back(sequence.slot);
    done_.push_back(std::move(completion));
  }

  /// Of prompts whose samples have all chosen their first token.
  void forget_logits() {
    const auto follows = [&](std::uint32_t prompt) {
      return std::ranges::any_of(running_, [&](const Sequence& sequence) { return sequence.completion.prompt == prompt && sequence.state == State::following; });
    };
    while (kept_ < next_ && !follows(kept_)) groups_[kept_++].logits = {};
  }

  void report() {
    if (!on_step_ || steps_.empty()) return;
    std::ranges::sort(steps_, {}, [](const StepLogits& step) { return std::tuple(step.draw, step.sample, step.position); });
    on_step_(steps_);
    steps_.clear();
  }

  Model& model_;
  KvCache& cache_;
  EngineOptions options_;
  std::span<const Request> requests_;
  const OnStep& on_step_;
  std::vector<Group> groups_;
  std::vector<std::uint32_t> free_;
  std::vector<Sequence> running_;
  std::vector<Completion> done_;
  std::vector<StepLogits> steps_;
  std::uint32_t next_ = 0;  ///< the request whose samples are admitted next
  std::uint32_t kept_ = 0;  ///< the first request whose logits may be kept
  Batch batch_;
  Activation hidden_, part_, logits_;
};

Engine::Engine(Model& model, EngineOptions options) : model_(model), options_(options) {
  TROUPE_CHECK(options.batch_max > 0, "something is computed at once");
  options_.rows_max = std::max(options.rows_max, options.batch_max);  // a step has room for one row of each sequence
}
Engine::~Engine() = default;

Result<std::vector<Completion>> Engine::generate(std::span<const Request> requests, const OnStep& on_step) {
  std::uint64_t samples = 0;
  std::uint32_t longest = 1;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (Result<void> checked = check_request(model_.config(), i, requests[i]); !checked) return checked.error();
    samples += requests[i].n;
    longest = std::max(longest, static_cast<std::uint32_t>(requests[i].prompt.size()) + requests[i].max_tokens);
  }
  EngineOptions options = options_;
  options.batch_max = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(samples, 1, options.batch_max));
  if (!cache_ || cache_->slots() < options.batch_max || cache_->length_max() < longest) {
    cache_.reset();  // before the next one takes its memory
    cache_.emplace(model_.make_cache(options.batch_max, longest));
  }
  return Generation(model_, *cache_, options, requests, on_step).run();
}

Result<void> Engine::score_batch(std::span<const std::vector<TokenId>> sequences, float temperature, std::vector<std::vector<float>>& out) {
  Batch batch;
  std::vector<std::uint32_t> rows;
  std::vector<TokenId> targets;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const auto first = batch.rows();
    batch.add({static_cast<std::uint32_t>(i), 0, static_cast<std::uint32_t>(sequences[i].size())}, sequences[i]);
    for (std::size_t t = 1; t < sequences[i].size(); ++t) {
      rows.push_back(first + static_cast<std::uint32_t>(t) - 1);
      targets.push_back(sequences[i][t]);
    }
  }
  Activation hidden, part;
  if (Result<void> computed = model_.forward(batch, nullptr, rows, hidden); !computed) return computed;
  std::vector<float> logprobs;
  const std::size_t dim = model_.config().hidden_size;
  for (std::size_t at = 0; at < targets.size(); at += options_.rows_max) {
    const std::size_t count = std::min<std::size_t>(options_.rows_max, targets.size() - at);
    model_.project(std::span(hidden).subspan(at * dim, count * dim), part);
    Result<Model::TokenLogprobs> scored = model_.token_logprobs(part, std::span(targets).subspan(at, count), temperature);
    if (!scored) return scored.error();
    logprobs.insert(logprobs.end(), scored->logprobs.begin(), scored->logprobs.end());
  }
  auto next = logprobs.begin();
  for (const std::vector<TokenId>& sequence : sequences) {
    const auto end = next + static_cast<std::ptrdiff_t>(sequence.size() - 1);
    out.emplace_back(next, end);
    next = end;
  }
  return {};
}

Result<std::vector<std::vector<float>>> Engine::score(std::span<const std::vector<TokenId>> sequences, float temperature) {
  const ModelConfig& config = model_.config();
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (Result<void> checked = check_tokens(config, "sequence", i, sequences[i]); !checked) return checked.error();
    if (sequences[i].size() > config.positions_max) {
      return Error{ErrorCode::bad_input, fmt::format("sequence {}: want at most max_position_embeddings {} tokens, got {}", i, config.positions_max, sequences[i].size())};
    }
  }
  std::vector<std::vector<float>> out;
  out.reserve(sequences.size());
  for (std::size_t first = 0; first < sequences.size();) {
    std::size_t count = 0;
    std::size_t rows = 0;
    // At least one sequence; then as many as there is room for.
    while (first + count < sequences.size() && count < options_.batch_max && (count == 0 || rows + sequences[first + count].size() <= options_.rows_max)) {
      rows += sequences[first + count++].size();
    }
    if (Result<void> scored = score_batch(sequences.subspan(first, count), temperature > 0.0F ? temperature : 1.0F, out); !scored) return scored.error();
    first += count;
  }
  return out;
}

}  // namespace troupe::models
