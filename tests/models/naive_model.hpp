#pragma once

// A decoder in float64, written from the papers and Hugging Face's documentation, sharing no code with ours but the weights' container:
// one sequence, no cache, no blocks, libm. What the engine computes is held against it.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "models/config.hpp"
#include "models/tensor.hpp"

namespace troupe::models::testing {

using Row = std::vector<double>;
using Rows = std::vector<Row>;

class NaiveModel {
 public:
  NaiveModel(const ModelConfig& config, const Weights& weights) : c_(config), w_(weights) {}

  /// Logits of every position.
  Rows logits(const std::vector<std::uint32_t>& tokens) const {
    Rows x;
    for (const std::uint32_t token : tokens) {
      Row row(c_.hidden_size);
      for (std::size_t i = 0; i < row.size(); ++i) row[i] = at("model.embed_tokens.weight")[token * row.size() + i];
      x.push_back(row);
    }
    for (std::uint32_t layer = 0; layer < c_.layers; ++layer) {
      const std::string name = "model.layers." + std::to_string(layer) + ".";
      add(x, attention(norm(x, name + "input_layernorm.weight"), name + "self_attn."));
      add(x, mlp(norm(x, name + "post_attention_layernorm.weight"), name + "mlp."));
    }
    return linear(norm(x, "model.norm.weight"), c_.tied_embeddings ? "model.embed_tokens" : "lm_head");
  }

  /// log p of each token from the second on.
  Row logprobs(const std::vector<std::uint32_t>& tokens) const {
    const Rows all = logits(tokens);
    Row out;
    for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
      const double top = *std::max_element(all[t].begin(), all[t].end());
      double sum = 0;
      for (const double logit : all[t]) sum += std::exp(logit - top);
      out.push_back(all[t][tokens[t + 1]] - top - std::log(sum));
    }
    return out;
  }

 private:
  const std::vector<float>& at(const std::string& name) const { return w_.at(name).data; }

  static void add(Rows& x, const Rows& y) {
    for (std::size_t r = 0; r < x.size(); ++r) {
      for (std::size_t i = 0; i < x[r].size(); ++i) x[r][i] += y[r][i];
    }
  }

  void norm_part(Row& row, std::size_t from, const std::vector<float>& weight) const {
    double squares = 0;
    for (std::size_t i = 0; i < weight.size(); ++i) squares += row[from + i] * row[from + i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(weight.size()) + static_cast<double>(c_.rms_norm_eps));
    for (std::size_t i = 0; i < weight.size(); ++i) row[from + i] *= scale * weight[i];
  }

  Rows norm(Rows x, const std::string& name) const {
    for (Row& row : x) norm_part(row, 0, at(name));
    return x;
  }

  Rows linear(const Rows& x, const std::string& name) const {
    const Tensor& weight = w_.at(name + ".weight");
    const auto bias = w_.find(name + ".bias");
    Rows out;
    for (const Row& row : x) {
      Row y(weight.shape[0]);
      for (std::size_t o = 0; o < y.size(); ++o) {
        y[o] = bias == w_.end() ? 0.0 : bias->second.data[o];
        for (std::size_t i = 0; i < row.size(); ++i) y[o] += row[i] * weight.data[o * row.size() + i];
      }
      out.push_back(y);
    }
    return out;
  }

  double frequency(std::size_t pair) const {
    const Rope& r = c_.rope;
    const double dim = c_.head_dim;
    const double base = std::pow(r.theta, -2.0 * static_cast<double>(pair) / dim);
    const double turns = r.original_positions_max * base / (2 * M_PI);  // rotations over the original length
    if (r.kind == RopeKind::linear) return base / r.factor;
    if (r.kind == RopeKind::llama3) {
      if (turns < r.low_freq_factor) return base / r.factor;
      if (turns > r.high_freq_factor) return base;
      const double smooth = (turns - r.low_freq_factor) / (r.high_freq_factor - r.low_freq_factor);
      return base * (smooth + (1 - smooth) / r.factor);
    }
    if (r.kind == RopeKind::yarn) {
      const auto dimension = [&](double rotations) { return dim / 2 * std::log(r.original_positions_max / (rotations * 2 * M_PI)) / std::log(r.theta); };
      const double low = std::max(std::floor(dimension(r.beta_fast)), 0.0);
      const double high = std::min(std::ceil(dimension(r.beta_slow)), dim - 1);
      const double ramp = std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
      return base * ((1 - ramp) + ramp / r.factor);
    }
    return base;
  }

  void rotate(Row& row, std::size_t from, std::size_t position) const {
    const std::size_t half = c_.head_dim / 2;
    double factor = 1;
    if (c_.rope.kind == RopeKind::yarn) factor = c_.rope.attention_factor.value_or(0.1 * std::log(c_.rope.factor) + 1);
    for (std::size_t i = 0; i < half; ++i) {
      const double angle = static_cast<double>(position) * frequency(i);
      const double a = row[from + i], b = row[from + half + i];
      row[from + i] = factor * (a * std::cos(angle) - b * std::sin(angle));
      row[from + half + i] = factor * (b * std::cos(angle) + a * std::sin(angle));
    }
  }

  void turn(Rows& x, std::size_t heads, const std::string& norm_name) const {
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t h = 0; h < heads; ++h) {
        if (c_.qk_norm) norm_part(x[t], h * c_.head_dim, at(norm_name));
        rotate(x[t], h * c_.head_dim, t);
      }
    }
  }

  Rows attention(const Rows& x, const std::string& name) const {
    Rows q = linear(x, name + "q_proj"), k = linear(x, name + "k_proj");
    const Rows v = linear(x, name + "v_proj");
    turn(q, c_.heads, name + "q_norm.weight");
    turn(k, c_.kv_heads, name + "k_norm.weight");
    Rows out(x.size(), Row(c_.heads * c_.head_dim));
    for (std::size_t h = 0; h < c_.heads; ++h) {
      const std::size_t shared = h / (c_.heads / c_.kv_heads);
      for (std::size_t t = 0; t < x.size(); ++t) {
        Row score(t + 1);
        for (std::size_t s = 0; s <= t; ++s) {
          for (std::size_t i = 0; i < c_.head_dim; ++i) score[s] += q[t][h * c_.head_dim + i] * k[s][shared * c_.head_dim + i];
          score[s] /= std::sqrt(c_.head_dim);
        }
        const double top = *std::max_element(score.begin(), score.end());
        double sum = 0;
        for (double& value : score) sum += value = std::exp(value - top);
        for (std::size_t s = 0; s <= t; ++s) {
          for (std::size_t i = 0; i < c_.head_dim; ++i) out[t][h * c_.head_dim + i] += score[s] / sum * v[s][shared * c_.head_dim + i];
        }
      }
    }
    return linear(out, name + "o_proj");
  }

  Rows mlp(const Rows& x, const std::string& name) const {
    Rows gate = linear(x, name + "gate_proj");
    const Rows up = linear(x, name + "up_proj");
    for (std::size_t t = 0; t < gate.size(); ++t) {
      for (std::size_t i = 0; i < gate[t].size(); ++i) gate[t][i] = gate[t][i] / (1 + std::exp(-gate[t][i])) * up[t][i];
    }
    return linear(gate, name + "down_proj");
  }

  const ModelConfig& c_;
  const Weights& w_;
};

}  // namespace troupe::models::testing
