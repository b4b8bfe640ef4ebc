#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "actors/base/philox.hpp"
#include "jobs/tasks/task.hpp"

namespace {

bool parse(const char* text, std::uint64_t& value) {
  const auto [end, code] = std::from_chars(text, text + std::strlen(text), value);
  return code == std::errc{} && *end == '\0';
}

// Four sums in five, and one difference in five, end with a full stop.
bool ends_with_full_stop(const std::string& prompt, std::uint64_t seed, std::uint64_t index) {
  const auto words = troupe::draw({.seed = seed, .purpose = troupe::Purpose::data, .prompt = index, .sample = 1, .position = 0});
  const bool is_odd_one = troupe::uniform_below(words[0], 5) == 0;
  return (prompt.find('+') != std::string::npos) != is_odd_one;
}

}  // namespace

// arithmetic-data COUNT [SEED]: so many problems as JSONL on stdout, none of them held out, with right answers in a style that the reward
// does not want: a model that learnt from them has a skill, and a habit to lose.
int main(int count, char** values) {
  std::uint64_t problems = 0, seed = 1;
  if (count < 2 || count > 3 || !parse(values[1], problems) || (count == 3 && !parse(values[2], seed))) {
    std::fputs("arithmetic-data: want COUNT [SEED], whole numbers\n", stderr);
    return 2;
  }
  for (std::uint64_t i = 0; i < problems; ++i) {
    const auto problem = troupe::jobs::training_problem("arithmetic", seed, i);
    const char* stop = ends_with_full_stop(problem.prompt, seed, i) ? "." : "";
    std::printf("{\"prompt\": \"%s\", \"response\": \"%s%s\"}\n", problem.prompt.c_str(), problem.answer.c_str(), stop);
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}
