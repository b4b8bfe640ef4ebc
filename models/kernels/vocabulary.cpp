#include "models/kernels/vocabulary.hpp"

#include <array>

#include "models/kernels/reductions.hpp"
#include "models/numerics/double_math.hpp"
#include "models/numerics/float_math.hpp"

namespace troupe::models {

namespace {

LogSumExp tree(std::span<const LogSumExp> parts) {
  if (parts.size() == 1) return parts[0];
  return combine(tree(parts.first(parts.size() / 2)), tree(parts.subspan(parts.size() / 2)));
}

float scaled(float logit, float temperature) { return logit / temperature; }

}  // namespace

LogSumExp combine(const LogSumExp& left, const LogSumExp& right) {
  if (left.sum == 0.0F) return right;
  if (right.sum == 0.0F) return left;
  const float maximum = left.maximum > right.maximum ? left.maximum : right.maximum;
  const float dl = left.maximum - maximum, dr = right.maximum - maximum;
  const float el = numerics::exp(dl), er = numerics::exp(dr);
  LogSumExp both;
  both.maximum = maximum;
  both.sum = std::fma(right.sum, er, left.sum * el);
  both.weighted = std::fma(std::fma(right.sum, dr, right.weighted), er, std::fma(left.sum, dl, left.weighted) * el);
  return both;
}

LogSumExp combine_shards(std::span<const LogSumExp> shards) { return tree(shards); }

void log_sum_exp(ThreadPool&, std::span<LogSumExp> states, std::span<const float> logits, const SegmentCuts& cuts, float temperature) {
  const std::size_t width = cuts.total();
  for (std::size_t row = 0; row < states.size(); ++row) {
    const float* z = &logits[row * width];
    std::array<LogSumExp, numerics::kSegments> parts{};
    for (std::size_t s = cuts.first; s < cuts.last; ++s) {
      if (cuts.size(s) == 0) continue;
      float maximum = scaled(z[cuts.offset[s]], temperature);
      for (std::size_t i = cuts.offset[s]; i < cuts.offset[s + 1]; ++i) {
        const float value = scaled(z[i], temperature);
        if (value > maximum) maximum = value;
      }
      maximum += 0.0F;  // −0 becomes +0: then the order of comparisons cannot show
      const auto shifted = [&](std::size_t i) { return scaled(z[i], temperature) - maximum; };
      parts[s].maximum = maximum;
      parts[s].sum = interleaved_sum<float>(cuts.offset[s], cuts.offset[s + 1], [&](std::size_t i, float sum) { return sum + numerics::exp(shifted(i)); });
      parts[s].weighted = interleaved_sum<float>(cuts.offset[s], cuts.offset[s + 1], [&](std::size_t i, float sum) {
        return std::fma(numerics::exp(shifted(i)), shifted(i), sum);
      });
    }
    states[row] = tree(std::span<const LogSumExp>(parts).subspan(cuts.first, cuts.held()));
  }
}

double log_probability(float logit, float temperature, const LogSumExp& whole) {
  return (static_cast<double>(scaled(logit, temperature)) - static_cast<double>(whole.maximum)) - numerics::log(static_cast<double>(whole.sum));
}

double entropy(const LogSumExp& whole) {
  return numerics::log(static_cast<double>(whole.sum)) - static_cast<double>(whole.weighted) / static_cast<double>(whole.sum);
}

void log_probability_gradient(ThreadPool&, std::span<float> dlogits, std::span<const float> logits, std::span<const LogSumExp> whole,
                              std::span<const std::uint32_t> targets, std::span<const float> coefficients, std::size_t first, float temperature) {
  const std::size_t width = logits.size() / whole.size();
  for (std::size_t row = 0; row < whole.size(); ++row) {
    const float c = coefficients[row] / temperature;
    for (std::size_t i = 0; i < width; ++i) {
      const float p = numerics::exp(scaled(logits[row * width + i], temperature) - whole[row].maximum) / whole[row].sum;
      const float hit = first + i == targets[row] ? 1.0F : 0.0F;
      dlogits[row * width + i] = coefficients[row] == 0.0F ? 0.0F : c * (hit - p);
    }
  }
}

void add_entropy_gradient(ThreadPool&, std::span<float> dlogits, std::span<const float> logits, std::span<const LogSumExp> whole,
                          std::span<const float> coefficients, float temperature) {
  const std::size_t width = logits.size() / whole.size();
  for (std::size_t row = 0; row < whole.size(); ++row) {
    const float c = coefficients[row] / temperature;
    const auto shift = static_cast<float>(entropy(whole[row]) - numerics::log(static_cast<double>(whole[row].sum)));
    for (std::size_t i = 0; i < width && coefficients[row] != 0.0F; ++i) {
      const float z = scaled(logits[row * width + i], temperature) - whole[row].maximum;
      const float p = numerics::exp(z) / whole[row].sum;
      float& d = dlogits[row * width + i];
      d = d - c * (p * (z + shift));
    }
  }
}

}  // namespace troupe::models
