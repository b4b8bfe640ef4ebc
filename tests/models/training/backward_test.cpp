// Gradients against the reference implementation's, and against central differences in float64 of a model that shares no code.

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "models/naive_model.hpp"
#include "models/rl/aggregation.hpp"
#include "models/rl/kl.hpp"
#include "models/training/backward.hpp"
#include "models/training/finished_gradients.hpp"
#include "models/training/gang.hpp"

namespace troupe::models {
namespace {

using namespace testing;

/// With these the first moments after one step are the gradient.
OptimizerSettings bare_gradient() { return {.learning_rate = 0, .beta1 = 0, .weight_decay = 0, .grad_clip = 0}; }

double largest(std::span<const double> values) {
  double out = 0;
  for (const double value : values) out = std::max(out, std::abs(value));
  return out;
}

std::vector<double> stored_gradient(std::string_view file, const std::string& name) {
  const BytesView bytes = std::as_bytes(std::span(file));
  const SafetensorsEntry entry = parse_safetensors_header(bytes, bytes.size(), "gradients").value().at(name);
  std::size_t elements = 1;
  for (const std::uint64_t extent : entry.shape) elements *= extent;
  if ((entry.end - entry.begin) / elements == sizeof(double)) return doubles_of(file, name);
  std::vector<float> floats(elements);
  std::memcpy(floats.data(), file.data() + entry.begin, elements * sizeof(float));
  return {floats.begin(), floats.end()};
}

class ReferenceGradients : public ::testing::TestWithParam<std::string> {};

TEST_P(ReferenceGradients, AreWithinTheTolerance) {
  const ModelFolder folder = load_reference(GetParam());
  const boost::json::value wanted = boost::json::parse(text_of(data_folder() / GetParam() / "training.json"));
  const std::string file = text_of(data_folder() / GetParam() / "gradients.safetensors");
  std::vector<TrainingSequence> batch;
  for (const Case& each : load_cases(GetParam()).all) batch.push_back(counted(each.tokens));
  ThreadPool pool(1);
  const auto trainer = Trainer::create(folder.config, folder.weights, bare_gradient(), pool).value();
  ASSERT_TRUE(trainer->train_tokens(batch, 8));
  const Weights gradients = trainer->state().value().first_moments;
  const double tolerance = wanted.at("tolerance").at("gradient_rel").to_number<double>();
  for (const auto& [name, gradient] : gradients) {
    const std::vector<double> expected = stored_gradient(file, name);
    ASSERT_EQ(gradient.data.size(), expected.size()) << name;
    double difference = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) difference = std::max(difference, std::abs(double{gradient.data[i]} - expected[i]));
    EXPECT_LE(difference, tolerance * largest(expected)) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, ReferenceGradients, ::testing::Values("llama", "qwen2", "qwen3"), [](const auto& name) { return name.param; });

/// d loss / d element by central differences at h and 2h, extrapolated: the error is of order h⁴.
double central_difference(Weights& weights, const std::string& name, std::size_t element, const std::function<double()>& loss) {
  float& value = weights.at(name).data[element];
  const float kept = value;
  const auto difference = [&](float h) {
    value = kept + h;
    const double up = value, above = loss();
    value = kept - h;
    const double slope = (above - loss()) / (up - double{value});
    value = kept;
    return slope;
  };
  const float h = 0x1p-13F;  // clipped losses have kinks: small enough that no token crosses one
  return (4 * difference(h) - difference(2 * h)) / 3;
}

/// A few elements of every parameter of `gradients` against central differences of `loss`, which reads `weights`.
void expect_derivatives(const Weights& gradients, Weights weights, const std::function<double(const Weights&)>& loss) {
  for (const auto& [name, gradient] : gradients) {
    const std::vector<double> all(gradient.data.begin(), gradient.data.end());
    for (const std::size_t at : {std::size_t{0}, all.size() / 3, all.size() * 2 / 3, all.size() - 1}) {
      const double wanted = central_difference(weights, name, at, [&] { return loss(weights); });
      // float32 against float64: rounding of some layers, of the parameter's largest gradient.
      EXPECT_NEAR(all[at], wanted, 1e-4 * largest(all) + 1e-7) << name << "[" << at << "]";
    }
  }
}

/// 3 sequences, the longest over one block of attention.
std::vector<Tokens> some_sequences(std::uint32_t vocabulary) {
  std::vector<Tokens> out;
  for (const std::size_t length : {7U, 70U, 12U}) {
    Tokens tokens(length);
    for (std::size_t i = 0; i < length; ++i) tokens[i] = static_cast<TokenId>((i * i * 3 + i * length + 1) % vocabulary);
    out.push_back(tokens);
  }
  return out;
}

class Derivatives : public ::testing::TestWithParam<Family> {
 protected:
  ModelConfig config = training_config(GetParam());
  Weights weights = training_weights(config);
  std::vector<Tokens> sequences = some_sequences(config.vocab_size);
  ThreadPool pool{1};
  std::unique_ptr<Trainer> trainer = Trainer::create(config, weights, bare_gradient(), pool).value();
};

TEST_P(Derivatives, OfCrossEntropy) {
  std::vector<TrainingSequence> batch;
  double count = 0;
  for (const Tokens& tokens : sequences) {
    batch.push_back(counted(tokens));
    batch.back().mask[2] = 0;
    count += static_cast<double>(tokens.size()) - 2;
  }
  const StepMetrics metrics = trainer->train_tokens(batch, 2).value();
  const auto loss = [&](const Weights& at) {
    double sum = 0;
    for (const Tokens& tokens : sequences) {
      const Row logprobs = NaiveModel(config, at).logprobs(tokens);
      for (std::size_t t = 0; t < logprobs.size(); ++t) sum -= t == 1 ? 0 : logprobs[t];
    }
    return sum / count;
  };
  EXPECT_NEAR(metrics.values.at("train/loss"), loss(weights), 1e-5);
  expect_derivatives(trainer->state().value().first_moments, weights, loss);
}

constexpr double kTemperature = 0.8;

/// log p ÷ temperature of each token from the second on, and the rows' entropies.
struct Scores {
  Row logprobs, entropies;
};

Scores scores_of(const NaiveModel& naive, const Tokens& tokens) {
  Scores out;
  const Rows all = naive.logits(tokens);
  for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
    const double top = *std::ranges::max_element(all[t]);
    double sum = 0, weighted = 0;
    for (const double logit : all[t]) {
      const double z = (logit - top) / kTemperature;
      sum += std::exp(z);
      weighted += std::exp(z) * z;
    }
    out.logprobs.push_back((all[t][tokens[t + 1]] - top) / kTemperature - std::log(sum));
    out.entropies.push_back(std::log(sum) - weighted / sum);
  }
  return out;
}

/// Responses from the third token on, old and reference log-probabilities around the present ones.
std::vector<PolicySequence> policy_batch(const ModelConfig& config, const Weights& weights, const std::vector<Tokens>& sequences) {
  std::vector<PolicySequence> batch;
  const double advantages[] = {1.3, -0.7, 0.4};
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const Row logprobs = scores_of(NaiveModel(config, weights), sequences[i]).logprobs;
    PolicySequence sequence{.tokens = sequences[i], .prompt_length = 2, .advantage = advantages[i]};
    for (std::size_t t = 1; t < logprobs.size(); ++t) {
      sequence.old_logprobs.push_back(static_cast<float>(logprobs[t] + 0.5 * std::sin(static_cast<double>(t * 5 + i))));
      sequence.reference_logprobs.push_back(static_cast<float>(logprobs[t] + 0.3 * std::cos(static_cast<double>(t * 3 + i))));
      sequence.mask.push_back(t % 6 == 4 ? 0 : 1);
    }
    batch.push_back(sequence);
  }
  return batch;
}

TEST_P(Derivatives, OfPolicyLossesWithEntropyAndKl) {
  const std::vector<PolicySequence> batch = policy_batch(config, weights, sequences);
  PolicySettings settings{.kl_loss_coef = 0.3, .entropy_coeff = 0.2, .temperature = kTemperature};
  for (const auto& [mode, aggregation] : {std::pair{"vanilla", "token-mean"}, {"geo_mean", "seq-mean-token-mean"}, {"sapo", "seq-mean-token-sum"}}) {
    settings.loss_mode = mode;
    settings.loss_agg_mode = aggregation;
    const auto fresh = Trainer::create(config, weights, bare_gradient(), pool).value();
    const StepMetrics metrics = fresh->train_policy(batch, settings, 2).value().metrics;
    const rl::LossMode loss_mode = rl::parse_loss_mode(mode).value();
    const rl::Aggregation plain = rl::parse_aggregation(aggregation).value();
    const auto loss = [&](const Weights& at) {
      std::vector<Row> losses, others;
      std::vector<std::vector<std::uint8_t>> masks;
      for (const PolicySequence& each : batch) {
        const Scores scores = scores_of(NaiveModel(config, at), each.tokens);
        const Row logprobs(scores.logprobs.begin() + 1, scores.logprobs.end()), old(each.old_logprobs.begin(), each.old_logprobs.end());
        const Row advantages(old.size(), each.advantage);
        losses.push_back(rl::policy_loss(loss_mode, settings.clipping(), {logprobs, old, advantages, each.mask, {}}).loss);
        others.emplace_back();
        for (std::size_t t = 0; t < old.size(); ++t) {
          others.back().push_back(0.3 * rl::kl(rl::KlKind::k3, logprobs[t], each.reference_logprobs[t]).value - 0.2 * scores.entropies[t + 1]);
        }
        masks.push_back(each.mask);
      }
      return rl::aggregate(rl::aggregation_of(loss_mode, plain), losses, masks) + rl::aggregate(plain, others, masks);
    };
    const double together = metrics.values.at("actor/pg_loss") + 0.3 * metrics.values.at("actor/kl_loss") - 0.2 * metrics.values.at("actor/entropy");
    EXPECT_NEAR(together, loss(weights), 1e-4) << mode;
    SCOPED_TRACE(mode);
    expect_derivatives(fresh->state().value().first_moments, weights, loss);
  }
}

// Logits are held for some sequences at a time: how many changes no bit.
TEST_P(Derivatives, DoNotDependOnHowManyLogitsAreHeld) {
  const auto model = Model::create(config, weights, pool).value();
  Batch batch;
  for (std::uint32_t i = 0; i < sequences.size(); ++i) batch.add({i, 0, static_cast<std::uint32_t>(sequences[i].size())}, sequences[i]);
  Tape tape;
  Activation unused;
  ASSERT_TRUE(model->forward(batch, nullptr, {}, unused, &tape));
  const auto gradients = [&](std::size_t logits_max) {
    Backward backward(*model, logits_max);
    backward.update(weights);
    GradientTrees trees;
    const auto loss = [](const SequenceRowsLoss& rows) { std::ranges::fill(rows.slopes, -0.1F * static_cast<float>(rows.span + 1)); };
    backward.run(tape, 1.0F, 0, loss, trees).value();
    return finish_gradients(*model, nullptr, sequences.size(), std::move(trees)).value();
  };
  const Gradients together = gradients(1U << 20U);
  for (const std::size_t logits_max : {1U, 80U * 37U}) {
    for (const auto& [name, gradient] : gradients(logits_max)) EXPECT_TRUE(same_bits(gradient, together.at(name))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Derivatives, ::testing::Values(Family::llama, Family::qwen2, Family::qwen3),
                         [](const auto& family) { return std::string(to_string(family.param)); });

}  // namespace
}  // namespace troupe::models
