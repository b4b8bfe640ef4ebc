#include "models/training/trainer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <optional>

#include "actors/base/check.hpp"
#include "models/engine.hpp"
#include "models/numerics/trees.hpp"
#include "models/rl/kl.hpp"
#include "models/training/backward.hpp"
#include "models/training/finished_gradients.hpp"
#include "models/training/packing.hpp"

namespace troupe::models {
namespace {

using Lists = std::vector<std::vector<float>>;

Error bad(std::size_t index, std::string_view wanted, std::size_t got) {
  return Error{ErrorCode::bad_input, fmt::format("sequence {}: want {}, got {}", index, wanted, got)};
}

Result<void> check_sequence(const ModelConfig& config, std::size_t index, std::span<const TokenId> tokens) {
  if (tokens.empty() || tokens.size() > config.positions_max) return bad(index, fmt::format("1 to {} tokens", config.positions_max), tokens.size());
  const auto beyond = std::ranges::find_if(tokens, [&](TokenId token) { return token >= config.vocab_size; });
  if (beyond != tokens.end()) return bad(index, fmt::format("tokens below the vocabulary's size {}", config.vocab_size), *beyond);
  return {};
}

Result<void> check_batch(std::size_t size, std::uint32_t micro_batch) {
  if (size == 0) return Error{ErrorCode::bad_input, "batch: want at least one sequence, got none"};
  if (micro_batch == 0) return Error{ErrorCode::bad_input, "micro_batch: want at least 1, got 0"};
  return {};
}

Result<void> check_policy_sequence(const ModelConfig& config, std::size_t index, const PolicySequence& sequence, bool with_kl) {
  if (Result<void> checked = check_sequence(config, index, sequence.tokens); !checked) return checked;
  if (sequence.prompt_length == 0 || sequence.prompt_length > sequence.tokens.size()) {
    return bad(index, fmt::format("prompt_length from 1 to its {} tokens", sequence.tokens.size()), sequence.prompt_length);
  }
  const std::size_t response = sequence.tokens.size() - sequence.prompt_length;
  const auto check = [&](std::string_view name, std::size_t size) -> Result<void> {
    if (size == 0 || size == response) return {};
    return bad(index, fmt::format("{} {} or none", response, name), size);
  };
  if (Result<void> checked = check("old_logprobs", sequence.old_logprobs.size()); !checked) return checked;
  if (Result<void> checked = check("reference_logprobs", sequence.reference_logprobs.size()); !checked) return checked;
  if (Result<void> checked = check("advantages", sequence.advantages.size()); !checked) return checked;
  if (Result<void> checked = check("mask", sequence.mask.size()); !checked) return checked;
  if (Result<void> checked = check("weights", sequence.weights.size()); !checked) return checked;
  if (with_kl && sequence.reference_logprobs.size() != response) {
    return bad(index, fmt::format("{} reference_logprobs for kl_loss_coef above 0", response), sequence.reference_logprobs.size());
  }
  return {};
}

/// The lists of all members, in the batch's order.
Result<std::vector<Bytes>> gather(collectives::Communicator* data, BytesView mine) {
  if (data == nullptr) return std::vector<Bytes>{Bytes(mine.begin(), mine.end())};
  return data->all_gather_variable(mine);
}

template <class T>
Result<std::vector<T>> gather_all(collectives::Communicator* data, const std::vector<T>& mine) {
  Result<std::vector<Bytes>> parts = gather(data, std::as_bytes(std::span(mine)));
  if (!parts) return parts.error();
  std::vector<T> all;
  for (const Bytes& part : *parts) {
    const std::size_t at = all.size();
    all.resize(at + part.size() / sizeof(T));
    if (!part.empty()) std::memcpy(all.data() + at, part.data(), part.size());
  }
  return all;
}

/// One number a sequence; the tree over sequences adds them.
template <std::size_t N>
std::array<double, N> sums(const std::vector<std::array<double, N>>& rows) {
  std::array<double, N> out{};
  std::vector<double> column(rows.size());
  for (std::size_t i = 0; i < N && !rows.empty(); ++i) {
    std::ranges::transform(rows, column.begin(), [&](const auto& row) { return row[i]; });
    out[i] = numerics::pairwise_tree(std::span<const double>(column));
  }
  return out;
}

using Order = std::vector<std::size_t>;

/// The order in which a batch is computed. Positions in it are the contract's global indices.
template <class TokensOf>
Order order_of(std::size_t count, const TokensOf& tokens_of) {
  std::vector<std::size_t> lengths(count);
  for (std::size_t i = 0; i < count; ++i) lengths[i] = tokens_of(i).size();
  return balanced_order(lengths);
}

/// Cuts one list, which follows the order, into those of the sequences.
template <class Sizes>
Lists cut(const std::vector<float>& all, const Order& order, const Sizes& size_of) {
  Lists out(order.size());
  auto at = all.begin();
  for (const std::size_t i : order) {
    const auto end = at + static_cast<std::ptrdiff_t>(size_of(i));
    out[i].assign(at, end);
    at = end;
  }
  return out;
}

}  // namespace

struct Trainer::State {
  ModelConfig config;
  OptimizerSettings settings;
  ThreadPool& pool;
  collectives::Communicator* data;
  std::vector<Parameter> all;
  std::unique_ptr<Model> model;
  std::optional<Backward> backward;
  Weights weights, first, second;  ///< the shard's
  std::uint64_t step = 0;
  Tape tape;

  using Loss = std::function<void(std::size_t index, const SequenceRowsLoss& rows)>;
  template <class TokensOf>
  Result<GradientTrees> gradients(const Order& order, const TokensOf& tokens_of, float temperature, std::uint32_t micro_batch, const Loss& loss);
  Result<double> apply(std::uint64_t sequences, GradientTrees trees);
  Result<Lists> score(std::uint64_t sequences, const std::function<const std::vector<TokenId>&(std::size_t)>& tokens_of, float temperature, std::uint32_t micro_batch);
  Result<void> check(std::span<const TrainingSequence> batch, std::uint32_t micro_batch, std::uint64_t& count) const;

  Tensor part_of(const Parameter& parameter, const Tensor& whole) const {
    Tensor part = shard_of(parameter, whole, model->shard());
    part.dtype = Dtype::float32;
    return part;
  }
  Result<Weights> whole(const Weights& parts) const;
};

Trainer::Trainer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Trainer::~Trainer() = default;
std::uint64_t Trainer::steps_done() const { return state_->step; }
Model& Trainer::model() { return *state_->model; }

Result<std::unique_ptr<Trainer>> Trainer::create(const ModelConfig& config, const Weights& whole, const OptimizerSettings& settings, ThreadPool& pool,
                                                 collectives::Communicator* tensor, collectives::Communicator* data) {
  if (Result<void> checked = check_settings(settings); !checked) return checked.error();
  Result<std::unique_ptr<Model>> model = tensor == nullptr ? Model::create(config, whole, pool) : Model::create(config, whole, pool, *tensor);
  if (!model) return model.error();
  auto state = std::unique_ptr<State>(
      new State{.config = config, .settings = settings, .pool = pool, .data = data, .all = parameters(config), .model = std::move(*model), .backward = {},
                .weights = {}, .first = {}, .second = {}, .step = 0, .tape = {}});
  for (const Parameter& parameter : state->all) {
    const Tensor part = state->part_of(parameter, whole.at(parameter.name));
    state->first[parameter.name] = Tensor::zeros(part.shape);
    state->second[parameter.name] = Tensor::zeros(part.shape);
    state->weights[parameter.name] = part;
  }
  state->backward.emplace(*state->model);
  state->backward->update(state->weights);
  return std::unique_ptr<Trainer>(new Trainer(std::move(state)));
}

Result<void> Trainer::set_optimizer(const OptimizerSettings& settings) {
  if (Result<void> checked = check_settings(settings); !checked) return checked;
  state_->settings = settings;
  return {};
}

/// Forward and backward over this member's range of the order, micro-batch by micro-batch; loss gets the batch's indices.
template <class TokensOf>
Result<GradientTrees> Trainer::State::gradients(const Order& order, const TokensOf& tokens_of, float temperature, std::uint32_t micro_batch,
                                                const Loss& loss) {
  GradientTrees trees;
  const Range mine = range_of(order.size(), data);
  Activation unused;
  for (std::uint64_t start = mine.begin; start < mine.end; start += micro_batch) {
    const std::uint64_t end = std::min<std::uint64_t>(mine.end, start + micro_batch);
    Batch batch;
    for (std::uint64_t i = start; i < end; ++i) {
      const std::vector<TokenId>& tokens = tokens_of(order[i]);
      batch.add({static_cast<std::uint32_t>(i - start), 0, static_cast<std::uint32_t>(tokens.size())}, tokens);
    }
    if (Result<void> computed = model->forward(batch, nullptr, {}, unused, &tape); !computed) return computed.error();
    const auto global = [&](const SequenceRowsLoss& rows) { loss(order[start + rows.span], rows); };
    if (Result<void> computed = backward->run(tape, temperature, start, global, trees); !computed) return computed.error();
  }
  return trees;
}

/// The optimizer's step; gives the norm before clipping.
Result<double> Trainer::State::apply(std::uint64_t sequences, GradientTrees trees) {
  Result<Gradients> finished = finish_gradients(*model, data, sequences, std::move(trees));
  if (!finished) return finished.error();
  const Result<double> norm = gradient_norm(*model, *finished);
  if (!norm) return norm;
  if (!(*norm < INFINITY)) {
    return Error{ErrorCode::bad_input, fmt::format("gradient norm: want a finite number, got {} (step {}): the weights are as before; look at the batch, or lower "
                                                   "learning_rate", *norm, step + 1)};
  }
  const AdamW numbers = adamw_step(settings, step + 1, *norm);
  for (auto& [name, tensor] : weights) adamw_update(pool, tensor.data, first.at(name).data, second.at(name).data, finished->at(name), numbers);
  ++step;
  if (Result<void> placed = model->update_shard(weights, step); !placed) return placed.error();
  backward->update(weights);
  return norm;
}

Result<void> Trainer::State::check(std::span<const TrainingSequence> batch, std::uint32_t micro_batch, std::uint64_t& count) const {
  if (Result<void> checked = check_batch(batch.size(), micro_batch); !checked) return checked;
  count = 0;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (Result<void> checked = check_sequence(config, i, batch[i].tokens); !checked) return checked;
    if (batch[i].mask.size() != batch[i].tokens.size()) return bad(i, fmt::format("a mask of {}", batch[i].tokens.size()), batch[i].mask.size());
    if (batch[i].mask[0] != 0) return bad(i, "mask 0 for token 0, which nothing predicts", batch[i].mask[0]);
    count += static_cast<std::uint64_t>(std::ranges::count_if(batch[i].mask, [](std::uint8_t m) { return m != 0; }));
  }
  if (count == 0) return Error{ErrorCode::bad_input, "batch: want at least one token with mask 1, got none"};
  return {};
}

namespace {

/// −Σ log p of a sequence's masked tokens.
double negative_log_likelihood(const TrainingSequence& sequence, std::span<const float> logprobs) {
  double sum = 0.0;
  for (std::size_t t = 0; t < logprobs.size(); ++t) {
    if (sequence.mask[t + 1] != 0) sum -= static_cast<double>(logprobs[t]);
  }
  return sum;
}

}  // namespace

Result<StepMetrics> Trainer::train_tokens(std::span<const TrainingSequence> batch, std::uint32_t micro_batch) {
  State& state = *state_;
  std::uint64_t count = 0;
  if (Result<void> checked = state.check(batch, micro_batch, count); !checked) return checked.error();
  const auto slope = static_cast<float>(-1.0 / static_cast<double>(count));
  std::vector<std::array<double, 1>> losses;
  const auto loss = [&](std::size_t index, const SequenceRowsLoss& rows) {
    for (std::size_t t = 0; t < rows.slopes.size(); ++t) rows.slopes[t] = batch[index].mask[t + 1] != 0 ? slope : 0.0F;
    losses.push_back({negative_log_likelihood(batch[index], rows.logprobs)});
  };
  const auto tokens_of = [&](std::size_t i) -> const std::vector<TokenId>& { return batch[i].tokens; };
  Result<GradientTrees> trees = state.gradients(order_of(batch.size(), tokens_of), tokens_of, 1.0F, micro_batch, loss);
  if (!trees) return trees.error();
  const auto all = gather_all(state.data, losses);
  if (!all) return all.error();
  const Result<double> norm = state.apply(batch.size(), std::move(*trees));
  if (!norm) return norm.error();
  StepMetrics metrics;
  metrics.values["train/loss"] = sums(*all)[0] / static_cast<double>(count);
  metrics.values["train/grad_norm"] = *norm;
  metrics.values["train/lr"] = learning_rate(state.settings, state.step);
  metrics.values["train/global_tokens"] = static_cast<double>(count);
  return metrics;
}

Result<double> Trainer::evaluate_tokens(std::span<const TrainingSequence> batch, std::uint32_t micro_batch) {
  State& state = *state_;
  std::uint64_t count = 0;
  if (Result<void> checked = state.check(batch, micro_batch, count); !checked) return checked.error();
  const auto scored = state.score(batch.size(), [&](std::size_t i) -> const std::vector<TokenId>& { return batch[i].tokens; }, 1.0F, micro_batch);
  if (!scored) return scored.error();
  std::vector<std::array<double, 1>> losses;
  for (std::size_t i = 0; i < batch.size(); ++i) losses.push_back({negative_log_likelihood(batch[i], (*scored)[i])});
  return sums(losses)[0] / static_cast<double>(count);
}

Result<Lists> Trainer::State::score(std::uint64_t sequences, const std::function<const std::vector<TokenId>&(std::size_t)>& tokens_of, float temperature,
                                    std::uint32_t micro_batch) {
  const Order order = order_of(sequences, tokens_of);
  const Range mine = range_of(sequences, data);
  std::vector<std::vector<TokenId>> part;
  for (std::uint64_t i = mine.begin; i < mine.end; ++i) part.push_back(tokens_of(order[i]));
  // As many rows at a time as have 256 MiB of logits.
  const auto rows_max = static_cast<std::uint32_t>(std::clamp<std::uint64_t>((std::uint64_t{1} << 26U) / std::max<std::uint64_t>(1, model->vocabulary().size()), 64, 4096));
  Engine engine(*model, {.batch_max = micro_batch, .rows_max = rows_max});
  const Result<Lists> scored = engine.score(part, temperature);
  if (!scored) return scored.error();
  std::vector<float> flat;
  for (const std::vector<float>& list : *scored) flat.insert(flat.end(), list.begin(), list.end());
  const Result<std::vector<float>> joined = gather_all(data, flat);
  if (!joined) return joined.error();
  return cut(*joined, order, [&](std::size_t i) { return tokens_of(i).size() - 1; });
}

Result<Lists> Trainer::logprobs(std::span<const std::vector<TokenId>> sequences, float temperature, std::uint32_t micro_batch) {
  if (Result<void> checked = check_batch(1, micro_batch); !checked) return checked.error();
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    if (Result<void> checked = check_sequence(state_->config, i, sequences[i]); !checked) return checked.error();
  }
  return state_->score(sequences.size(), [&](std::size_t i) -> const std::vector<TokenId>& { return sequences[i]; }, temperature, micro_batch);
}

namespace {

/// The settings' names, understood.
struct Policy {
  const PolicySettings& settings;
  rl::LossMode mode{};
  rl::Aggregation aggregation{};        ///< of entropy and KL
  rl::Aggregation loss_aggregation{};   ///< of the policy's loss
  rl::KlKind kl{};
  rl::Counts counts{};

  static Result<Policy> parse(const PolicySettings& settings) {
    Policy policy{.settings = settings};
    const Result<rl::LossMode> mode = rl::parse_loss_mode(settings.loss_mode);
    if (!mode) return mode.error();
    const Result<rl::Aggregation> aggregation = rl::parse_aggregation(settings.loss_agg_mode);
    if (!aggregation) return aggregation.error();
    const Result<rl::KlKind> kl = rl::parse_kl_kind(settings.kl_loss_type);
    if (!kl) return kl.error();
    if (!(settings.temperature >= 0.0)) return Error{ErrorCode::bad_input, fmt::format("temperature: want at least 0, got {}", settings.temperature)};
    policy.mode = *mode;
    policy.aggregation = *aggregation;
    policy.loss_aggregation = rl::aggregation_of(*mode, *aggregation);
    policy.kl = *kl;
    return policy;
  }

  double weight(rl::Aggregation of, std::uint64_t tokens) const { return rl::token_weight(of, tokens, counts, settings.loss_scale_factor); }
  double divided(rl::Aggregation of, double sum) const { return sum / rl::batch_divisor(of, counts, settings.loss_scale_factor); }
};

/// What one sequence adds to the metrics.
enum : std::size_t { kLoss, kEntropy, kKl, kRatioKl, kClipped, kClippedLower, kSums };
using SequenceSums = std::array<double, kSums>;

std::vector<std::uint8_t> mask_of(const PolicySequence& sequence) {
  const std::size_t response = sequence.tokens.size() - sequence.prompt_length;
  return sequence.mask.empty() ? std::vector<std::uint8_t>(response, 1) : sequence.mask;
}

std::uint64_t tokens_of_mask(std::span<const std::uint8_t> mask) {
  return static_cast<std::uint64_t>(std::ranges::count_if(mask, [](std::uint8_t m) { return m != 0; }));
}

/// Slopes of one sequence's rows, and its sums.
SequenceSums policy_rows(const Policy& policy, const PolicySequence& sequence, const SequenceRowsLoss& rows) {
  const std::size_t first = sequence.prompt_length - 1;  // the row that predicts the response's first token
  const std::size_t response = rows.logprobs.size() - first;
  const std::vector<std::uint8_t> mask = mask_of(sequence);
  const std::vector<double> logprobs(rows.logprobs.begin() + static_cast<std::ptrdiff_t>(first), rows.logprobs.end());
  const std::vector<double> old = sequence.old_logprobs.empty() ? logprobs : std::vector<double>(sequence.old_logprobs.begin(), sequence.old_logprobs.end());
  const std::vector<double> advantages = sequence.advantages.empty() ? std::vector<double>(response, sequence.advantage) : sequence.advantages;
  const rl::PolicyLoss loss = rl::policy_loss(policy.mode, policy.settings.clipping(), {logprobs, old, advantages, mask, sequence.weights});

  const std::uint64_t tokens = tokens_of_mask(mask);
  const double loss_weight = policy.weight(policy.loss_aggregation, tokens), weight = policy.weight(policy.aggregation, tokens);
  const bool with_kl = !sequence.reference_logprobs.empty();
  SequenceSums out{};
  for (std::size_t t = 0; t < response; ++t) {
    if (mask[t] == 0) continue;
    double slope = loss.slope[t] * loss_weight;
    if (with_kl) {
      const rl::ValueAndSlope kl = rl::kl(policy.kl, logprobs[t], static_cast<double>(sequence.reference_logprobs[t]));
      slope += policy.settings.kl_loss_coef * kl.slope * weight;
      out[kKl] += kl.value;
    }
    rows.slopes[first + t] = static_cast<float>(slope);
    rows.entropy_slopes[first + t] = static_cast<float>(-policy.settings.entropy_coeff * weight);
    out[kLoss] += loss.loss[t];
    out[kEntropy] += entropy(rows.states[first + t]);
  }
  out[kLoss] /= rl::sequence_divisor(policy.loss_aggregation, tokens);
  out[kEntropy] /= rl::sequence_divisor(policy.aggregation, tokens);
  out[kKl] /= rl::sequence_divisor(policy.aggregation, tokens);
  out[kRatioKl] = loss.kl;
  out[kClipped] = static_cast<double>(loss.clipped);
  out[kClippedLower] = static_cast<double>(loss.clipped_lower);
  return out;
}

StepMetrics policy_metrics(const Policy& policy, const SequenceSums& total, bool with_kl) {
  const double tokens = static_cast<double>(policy.counts.tokens);
  StepMetrics metrics;
  metrics.values["actor/pg_loss"] = policy.divided(policy.loss_aggregation, total[kLoss]);
  metrics.values["actor/entropy"] = policy.divided(policy.aggregation, total[kEntropy]);
  metrics.values["actor/ppo_kl"] = total[kRatioKl] / tokens;
  metrics.values["actor/pg_clipfrac"] = total[kClipped] / tokens;
  metrics.values["actor/pg_clipfrac_lower"] = total[kClippedLower] / tokens;
  if (with_kl) metrics.values["actor/kl_loss"] = policy.divided(policy.aggregation, total[kKl]);
  return metrics;
}

}  // namespace

Result<Trainer::PolicyResult> Trainer::train_policy(std::span<const PolicySequence> batch, const PolicySettings& settings, std::uint32_t micro_batch) {
  State& state = *state_;
  Result<Policy> policy = Policy::parse(settings);
  if (!policy) return policy.error();
  if (Result<void> checked = check_batch(batch.size(), micro_batch); !checked) return checked.error();
  bool with_kl = false;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (Result<void> checked = check_policy_sequence(state.config, i, batch[i], settings.kl_loss_coef > 0.0); !checked) return checked.error();
    policy->counts.add(tokens_of_mask(mask_of(batch[i])));
    with_kl = with_kl || !batch[i].reference_logprobs.empty();
  }
  if (policy->counts.tokens == 0) return Error{ErrorCode::bad_input, "batch: want at least one response token with mask 1, got none"};

  std::vector<SequenceSums> sequence_sums;
  std::vector<float> flat;
  const auto loss = [&](std::size_t index, const SequenceRowsLoss& rows) {
    sequence_sums.push_back(policy_rows(*policy, batch[index], rows));
    flat.insert(flat.end(), rows.logprobs.begin() + batch[index].prompt_length - 1, rows.logprobs.end());
  };
  const auto tokens_of = [&](std::size_t i) -> const std::vector<TokenId>& { return batch[i].tokens; };
  const float temperature = settings.temperature > 0.0 ? static_cast<float>(settings.temperature) : 1.0F;
  const Order order = order_of(batch.size(), tokens_of);
  Result<GradientTrees> trees = state.gradients(order, tokens_of, temperature, micro_batch, loss);
  if (!trees) return trees.error();
  const Result<std::vector<SequenceSums>> all_sums = gather_all(state.data, sequence_sums);
  if (!all_sums) return all_sums.error();
  const Result<std::vector<float>> all_logprobs = gather_all(state.data, flat);
  if (!all_logprobs) return all_logprobs.error();
  const Result<double> norm = state.apply(batch.size(), std::move(*trees));
  if (!norm) return norm.error();
  PolicyResult out;
  out.metrics = policy_metrics(*policy, sums(*all_sums), with_kl);
  out.metrics.values["actor/grad_norm"] = *norm;
  out.metrics.values["actor/lr"] = learning_rate(state.settings, state.step);
  out.logprobs = cut(*all_logprobs, order, [&](std::size_t i) { return batch[i].tokens.size() - batch[i].prompt_length; });
  return out;
}

Result<Weights> Trainer::State::whole(const Weights& parts) const {
  if (model->communicator() == nullptr) return parts;
  Weights out;
  for (const Parameter& parameter : all) {
    const Tensor& part = parts.at(parameter.name);
    if (parameter.split == Split::whole) {
      out[parameter.name] = part;
      continue;
    }
    Result<std::vector<Bytes>> members = model->communicator()->all_gather_variable(std::as_bytes(std::span(part.data)));
    if (!members) return members.error();
    Tensor whole_tensor = Tensor::zeros(parameter.shape);
    for (std::uint32_t member = 0; member < members->size(); ++member) {
      const Shard shard{model->shard().degree, member};
      Tensor piece = shard_of(parameter, whole_tensor, shard);
      const Bytes& bytes = (*members)[member];
      TROUPE_CHECK(bytes.size() == piece.data.size() * sizeof(float), "every shard sends its part");
      if (!bytes.empty()) std::memcpy(piece.data.data(), bytes.data(), bytes.size());
      place_shard(parameter, piece, shard, whole_tensor);
    }
    out[parameter.name] = std::move(whole_tensor);
  }
  return out;
}

Result<Weights> Trainer::weights() { return state_->whole(state_->weights); }

Result<TrainerState> Trainer::state() {
  TrainerState out;
  out.step = state_->step;
  for (const auto& [to, from] : {std::pair{&out.weights, &state_->weights}, {&out.first_moments, &state_->first}, {&out.second_moments, &state_->second}}) {
    Result<Weights> whole = state_->whole(*from);
    if (!whole) return whole.error();
    *to = std::move(*whole);
  }
  return out;
}

Result<void> Trainer::restore(const TrainerState& saved) {
  State& state = *state_;
  for (const Weights* each : {&saved.weights, &saved.first_moments, &saved.second_moments}) {
    if (Result<void> checked = check_weights(state.config, *each); !checked) return checked;
  }
  for (const Parameter& parameter : state.all) {
    state.weights[parameter.name] = state.part_of(parameter, saved.weights.at(parameter.name));
    state.first[parameter.name] = state.part_of(parameter, saved.first_moments.at(parameter.name));
    state.second[parameter.name] = state.part_of(parameter, saved.second_moments.at(parameter.name));
  }
  state.step = saved.step;
  if (Result<void> placed = state.model->update_shard(state.weights, state.step); !placed) return placed;
  state.backward->update(state.weights);
  return {};
}

}  // namespace troupe::models
