#include "jobs/tasks/task.hpp"

#include "actors/base/check.hpp"
#include "jobs/tasks/arithmetic.hpp"

namespace troupe::jobs {

Problem training_problem(std::string_view task, std::uint64_t seed, std::uint64_t draw) {
  TROUPE_CHECK(task == "arithmetic", "the configuration allows no other task");
  return arithmetic::training(seed, draw);
}

Problem held_out_problem(std::string_view task, std::uint32_t index) {
  TROUPE_CHECK(task == "arithmetic", "the configuration allows no other task");
  return arithmetic::held_out().at(index);
}

std::uint32_t held_out_count(std::string_view task) {
  TROUPE_CHECK(task == "arithmetic", "the configuration allows no other task");
  return static_cast<std::uint32_t>(arithmetic::held_out().size());
}

std::string longest_prompt(std::string_view task) {
  TROUPE_CHECK(task == "arithmetic", "the configuration allows no other task");
  return arithmetic::problem(arithmetic::kOperandMax, '+', arithmetic::kOperandMax).prompt;
}

double reward_of(std::string_view task, const Problem& problem, std::string_view response) {
  TROUPE_CHECK(task == "arithmetic", "the configuration allows no other task");
  return response == problem.answer ? 1.0 : 0.0;
}

}  // namespace troupe::jobs
