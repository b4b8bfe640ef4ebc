#include "models/rl/advantages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/numerics/trees.hpp"

namespace troupe::models::rl {
namespace {

constexpr double kEpsilon = 1e-6;

using Rows = std::vector<std::vector<double>>;
using Batch = std::span<const Response>;

double sum(std::span<const double> values) { return values.empty() ? 0.0 : numerics::pairwise_tree(values); }

double chain(std::span<const double> values) {
  double total = 0.0;
  for (const double value : values) total += value;
  return total;
}

std::size_t length(const Response& response) { return static_cast<std::size_t>(std::ranges::count(response.mask, std::uint8_t{1})); }

/// Responses of one prompt, in the batch's order.
struct Group {
  std::vector<std::size_t> members;
  std::vector<double> scores;

  double n() const { return static_cast<double>(scores.size()); }
  double mean() const { return scores.size() < 2 ? 0.0 : sum(scores) / n(); }
  /// The sample standard deviation.
  double deviation() const {
    if (scores.size() < 2) return 1.0;
    std::vector<double> squares;
    for (const double score : scores) squares.push_back((score - mean()) * (score - mean()));
    return std::sqrt(sum(squares) / (n() - 1.0));
  }
};

std::vector<Group> groups_of(Batch batch) {
  std::map<std::uint64_t, Group> groups;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Group& group = groups[batch[i].group];
    group.members.push_back(i);
    group.scores.push_back(chain(batch[i].rewards));
  }
  std::vector<Group> out;
  for (auto& [id, group] : groups) out.push_back(std::move(group));
  return out;
}

/// One value for all of a response's tokens.
std::vector<double> spread(const Response& response, double value) {
  std::vector<double> out(response.mask.size());
  for (std::size_t t = 0; t < out.size(); ++t) out[t] = response.mask[t] != 0 ? value : 0.0;
  return out;
}

/// (x − mean) · rsqrt(var · N / (N − 1) + 1e-8) over the masked tokens of the batch; 0 elsewhere.
Result<Rows> whiten(Batch batch, const Rows& rows) {
  std::size_t count = 0;
  std::vector<double> sums;
  const auto total = [&](const auto& of) {
    sums.clear();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      double one = 0.0;
      for (std::size_t t = 0; t < rows[i].size(); ++t) one += batch[i].mask[t] != 0 ? of(rows[i][t]) : 0.0;
      sums.push_back(one);
    }
    return sum(sums);
  };
  for (const Response& response : batch) count += length(response);
  if (count < 2) return Error{ErrorCode::bad_input, fmt::format("advantages: want at least 2 response tokens to whiten over, got {}", count)};
  const auto n = static_cast<double>(count);
  const double mean = total([](double x) { return x; }) / n;
  const double variance = total([&](double x) { return (x - mean) * (x - mean); }) / n;
  const double factor = 1.0 / std::sqrt(variance * (n / (n - 1.0)) + 1e-8);
  Rows out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    out.push_back(spread(batch[i], 1.0));
    for (std::size_t t = 0; t < rows[i].size(); ++t) out[i][t] *= (rows[i][t] - mean) * factor;
  }
  return out;
}

/// Estimators that give each response one value; returns are the advantages.
template <class Value>
Result<Advantages> by_group(Batch batch, const Value& value_of) {
  Advantages out;
  out.advantages.resize(batch.size());
  for (const Group& group : groups_of(batch)) {
    for (std::size_t k = 0; k < group.members.size(); ++k) {
      const std::size_t i = group.members[k];
      out.advantages[i] = spread(batch[i], value_of(group, k));
    }
  }
  out.returns = out.advantages;
  return out;
}

Result<Advantages> grpo(Batch batch, const AdvantageSettings& settings) {
  return by_group(batch, [&](const Group& group, std::size_t k) {
    const double centred = group.scores[k] - group.mean();
    return settings.norm_adv_by_std_in_grpo ? centred / (group.deviation() + kEpsilon) : centred;
  });
}

Result<Advantages> rloo(Batch batch, const AdvantageSettings&) {
  return by_group(batch, [](const Group& group, std::size_t k) {
    if (group.scores.size() < 2) return group.scores[k];
    return group.n() / (group.n() - 1.0) * (group.scores[k] - group.mean());
  });
}

Result<Advantages> opo(Batch batch, const AdvantageSettings&) {
  return by_group(batch, [&](const Group& group, std::size_t k) {
    std::vector<double> lengths, weighted;
    for (std::size_t j = 0; j < group.members.size(); ++j) {
      lengths.push_back(static_cast<double>(length(batch[group.members[j]])));
      weighted.push_back(lengths.back() * group.scores[j]);
    }
    const double total = sum(lengths);
    if (group.scores.size() < 2 || total == 0.0) return group.scores[k];
    return group.scores[k] - sum(weighted) / total;
  });
}

Result<Advantages> gpg(Batch batch, const AdvantageSettings&) {
  std::size_t scored = 0;
  for (const Response& response : batch) scored += chain(response.rewards) != 0.0 ? 1 : 0;
  const double alpha = static_cast<double>(batch.size()) / static_cast<double>(std::max<std::size_t>(1, scored));
  return by_group(batch, [&](const Group& group, std::size_t k) { return alpha * (group.scores[k] - group.mean()); });
}

Result<Advantages> grpo_passk(Batch batch, const AdvantageSettings& settings) {
  for (const Group& group : groups_of(batch)) {
    if (group.scores.size() < 2) return Error{ErrorCode::bad_input, "adv_estimator grpo_passk: want at least 2 responses a prompt, got 1"};
  }
  return by_group(batch, [&](const Group& group, std::size_t k) {
    const auto best = std::ranges::max_element(group.scores);  // the first of equals
    if (static_cast<std::size_t>(best - group.scores.begin()) != k) return 0.0;
    std::vector<double> others = group.scores;
    others.erase(others.begin() + (best - group.scores.begin()));
    const double lead = *best - *std::ranges::max_element(others);
    return settings.norm_adv_by_std_in_grpo ? lead / (group.deviation() + kEpsilon) : lead;
  });
}

Result<Advantages> whitened(Batch batch, Rows returns) {
  Result<Rows> white = whiten(batch, returns);
  if (!white) return white.error();
  return Advantages{std::move(*white), std::move(returns)};
}

Result<Advantages> reinforce_plus_plus(Batch batch, const AdvantageSettings& settings) {
  Rows returns;
  for (const Response& response : batch) {
    std::vector<double> row(response.mask.size());
    double running = 0.0;
    for (std::size_t t = row.size(); t-- > 0;) {
      running = response.rewards[t] + settings.gamma * running;
      row[t] = running;
      if (response.mask[t] == 0) running = 0.0;
    }
    returns.push_back(std::move(row));
  }
  return whitened(batch, std::move(returns));
}

Result<Advantages> reinforce_plus_plus_baseline(Batch batch, const AdvantageSettings&) {
  Result<Advantages> centred = by_group(batch, [](const Group& group, std::size_t k) { return group.scores[k] - group.mean(); });
  return whitened(batch, std::move(centred->advantages));
}

Result<Advantages> remax(Batch batch, const AdvantageSettings&) {
  Advantages out;
  for (const Response& response : batch) {
    std::vector<double> returns(response.mask.size());
    double running = 0.0;
    for (std::size_t t = returns.size(); t-- > 0;) {
      if (response.mask[t] != 0) running += response.rewards[t];
      returns[t] = running;
    }
    std::vector<double> row = spread(response, response.baseline);
    for (std::size_t t = 0; t < row.size(); ++t) row[t] = returns[t] - row[t];
    out.advantages.push_back(std::move(row));
    out.returns.push_back(std::move(returns));
  }
  return out;
}

/// arXiv:1506.02438; over m = 0 the next value and the running sum are carried unchanged.
Result<Advantages> gae(Batch batch, const AdvantageSettings& settings) {
  Rows raw, returns;
  for (const Response& response : batch) {
    if (response.values.size() != response.mask.size()) {
      return Error{ErrorCode::bad_input, fmt::format("adv_estimator gae: want {} values, got {}", response.mask.size(), response.values.size())};
    }
    std::vector<double> row(response.mask.size()), back(response.mask.size());
    double next_value = 0.0, running = 0.0;
    for (std::size_t t = row.size(); t-- > 0;) {
      if (response.mask[t] == 0) continue;
      const double delta = response.rewards[t] + settings.gamma * next_value - response.values[t];
      running = delta + settings.gamma * settings.lam * running;
      next_value = response.values[t];
      row[t] = running;
      back[t] = running + response.values[t];
    }
    raw.push_back(std::move(row));
    returns.push_back(std::move(back));
  }
  Result<Rows> white = whiten(batch, raw);
  if (!white) return white.error();
  return Advantages{std::move(*white), std::move(returns)};
}

struct Named {
  std::string_view name;
  Result<Advantages> (*compute)(Batch, const AdvantageSettings&);
};

constexpr Named kEstimators[] = {{"gae", gae},
                                 {"grpo", grpo},
                                 {"rloo", rloo},
                                 {"reinforce_plus_plus", reinforce_plus_plus},
                                 {"reinforce_plus_plus_baseline", reinforce_plus_plus_baseline},
                                 {"remax", remax},
                                 {"opo", opo},
                                 {"gpg", gpg},
                                 {"grpo_passk", grpo_passk}};

}  // namespace

Result<Advantages> advantages(std::span<const Response> batch, const AdvantageSettings& settings) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].rewards.size() != batch[i].mask.size()) {
      return Error{ErrorCode::bad_input, fmt::format("advantages: response {}: want {} rewards as the mask has, got {}", i, batch[i].mask.size(), batch[i].rewards.size())};
    }
  }
  for (const Named& each : kEstimators) {
    if (each.name == settings.adv_estimator) return each.compute(batch, settings);
  }
  std::string known;
  for (const Named& each : kEstimators) known += (known.empty() ? "" : ", ") + std::string(each.name);
  return Error{ErrorCode::bad_input, fmt::format("adv_estimator: want one of {}, got '{}'", known, settings.adv_estimator)};
}

}  // namespace troupe::models::rl
