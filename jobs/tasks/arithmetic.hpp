#pragma once

#include <cstdint>
#include <vector>

#include "jobs/tasks/task.hpp"

namespace troupe::jobs::arithmetic {

/// Sums and differences of numbers from 0 to kOperandMax whose result is not negative: "25+17=" with answer "42".
inline constexpr std::uint32_t kOperandMax = 49;

Problem problem(std::uint32_t left, char operation, std::uint32_t right);
bool is_held_out(const Problem& problem);

/// In a fixed order that looks random.
const std::vector<Problem>& held_out();
Problem training(std::uint64_t seed, std::uint64_t draw);

}  // namespace troupe::jobs::arithmetic
