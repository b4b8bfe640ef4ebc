#include "jobs/grpo/statistics.hpp"

#include <algorithm>

namespace troupe::jobs::grpo {

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

void add_statistics(std::map<std::string, double>& metrics, const std::string& name, std::span<const double> values) {
  if (values.empty()) return;
  metrics[name + "/mean"] = mean(values);
  metrics[name + "/max"] = *std::max_element(values.begin(), values.end());
  metrics[name + "/min"] = *std::min_element(values.begin(), values.end());
}

void add_sequence_statistics(std::map<std::string, double>& metrics, const std::vector<Sequence>& sequences, const std::vector<Sample>& samples) {
  std::vector<double> prompts, responses, advantages;
  double tokens = 0;
  for (const Sequence& sequence : sequences) {
    prompts.push_back(static_cast<double>(sequence.prompt.size()));
    responses.push_back(static_cast<double>(sequence.response.size()));
    advantages.insert(advantages.end(), sequence.advantages.begin(), sequence.advantages.end());
    tokens += prompts.back() + responses.back();
  }
  add_statistics(metrics, "prompt_length", prompts);
  add_statistics(metrics, "response_length", responses);
  add_statistics(metrics, "critic/advantages", advantages);
  const auto cut = std::count_if(samples.begin(), samples.end(), [](const Sample& sample) { return !sample.stopped; });
  if (!samples.empty()) metrics["response_length/clip_ratio"] = static_cast<double>(cut) / static_cast<double>(samples.size());
  metrics["perf/total_num_tokens"] = tokens;
}

}  // namespace troupe::jobs::grpo
