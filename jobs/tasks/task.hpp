#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::jobs {

/// A prompt with the answer that is right.
struct Problem {
  std::string prompt;
  std::string answer;
};

/// The problem of a draw: a function of its arguments alone, never a held-out one. task: "arithmetic".
Problem training_problem(std::string_view task, std::uint64_t seed, std::uint64_t draw);

/// Held-out problems are the same for every run: an eighth of all, chosen by digest. Index below held_out_count.
Problem held_out_problem(std::string_view task, std::uint32_t index);
std::uint32_t held_out_count(std::string_view task);

/// None is longer.
std::string longest_prompt(std::string_view task);

/// 1 for a right response, else 0. What follows the answer's characters counts as wrong.
double reward_of(std::string_view task, const Problem& problem, std::string_view response);

}  // namespace troupe::jobs
