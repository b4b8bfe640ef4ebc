#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "jobs/tasks/task.hpp"

namespace {

bool parse(const char* text, std::uint64_t& value) {
  const auto [end, code] = std::from_chars(text, text + std::strlen(text), value);
  return code == std::errc{} && *end == '\0';
}

}  // namespace

// arithmetic-data COUNT [SEED]: so many problems to train on as JSONL on stdout, none of them held out.
int main(int count, char** values) {
  std::uint64_t problems = 0, seed = 1;
  if (count < 2 || count > 3 || !parse(values[1], problems) || (count == 3 && !parse(values[2], seed))) {
    std::fputs("arithmetic-data: want COUNT [SEED], whole numbers\n", stderr);
    return 2;
  }
  for (std::uint64_t i = 0; i < problems; ++i) {
    const auto problem = troupe::jobs::training_problem("arithmetic", seed, i);
    std::printf("{\"prompt\": \"%s\", \"response\": \"%s\"}\n", problem.prompt.c_str(), problem.answer.c_str());
  }
  return std::fflush(stdout) == 0 ? 0 : 1;
}
