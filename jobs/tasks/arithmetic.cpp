#include "jobs/tasks/arithmetic.hpp"

#include <algorithm>

#include "actors/base/digest.hpp"
#include "actors/base/philox.hpp"

namespace troupe::jobs::arithmetic {

Problem problem(std::uint32_t left, char operation, std::uint32_t right) {
  const std::uint32_t result = operation == '+' ? left + right : left - right;
  return {std::to_string(left) + operation + std::to_string(right) + "=", std::to_string(result)};
}

bool is_held_out(const Problem& problem) { return digest64(problem.prompt) % 8 == 0; }

const std::vector<Problem>& held_out() {
  static const std::vector<Problem> problems = [] {
    std::vector<Problem> found;
    for (std::uint32_t left = 0; left <= kOperandMax; ++left) {
      for (std::uint32_t right = 0; right <= kOperandMax; ++right) {
        found.push_back(problem(left, '+', right));
        if (right <= left) found.push_back(problem(left, '-', right));
      }
    }
    std::erase_if(found, [](const Problem& each) { return !is_held_out(each); });
    std::sort(found.begin(), found.end(), [](const Problem& a, const Problem& b) { return digest64(a.prompt) < digest64(b.prompt); });
    return found;
  }();
  return problems;
}

Problem training(std::uint64_t seed, std::uint64_t draw_number) {
  for (std::uint32_t attempt = 0;; ++attempt) {
    const auto words = draw({.seed = seed, .purpose = Purpose::data, .prompt = draw_number, .position = attempt});
    std::uint32_t left = uniform_below(words[0], kOperandMax + 1);
    std::uint32_t right = uniform_below(words[1], kOperandMax + 1);
    const char operation = words[2] % 2 == 0 ? '+' : '-';
    if (operation == '-' && right > left) std::swap(left, right);
    const Problem drawn = problem(left, operation, right);
    if (!is_held_out(drawn)) return drawn;
  }
}

}  // namespace troupe::jobs::arithmetic
