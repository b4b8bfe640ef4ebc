#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "jobs/grpo/messages.hpp"

namespace troupe::jobs::grpo {

/// name/mean, name/max, name/min of values, in double and in their order. Nothing for no values.
void add_statistics(std::map<std::string, double>& metrics, const std::string& name, std::span<const double> values);

double mean(std::span<const double> values);

/// Metrics of a step's sequences under verl's names: prompt_length/*, response_length/* (clip_ratio: cut by the limit), critic/advantages/*,
/// perf/total_num_tokens.
void add_sequence_statistics(std::map<std::string, double>& metrics, const std::vector<Sequence>& sequences, const std::vector<Sample>& samples);

}  // namespace troupe::jobs::grpo
