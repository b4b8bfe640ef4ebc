#include "jobs/grpo/environment.hpp"

namespace troupe::jobs::grpo {
namespace {

Environment& instance() {
  static Environment environment;
  return environment;
}

}  // namespace

const Environment& environment() { return instance(); }
void install(Environment environment) { instance() = std::move(environment); }

}  // namespace troupe::jobs::grpo
