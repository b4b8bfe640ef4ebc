#include "actors/base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace troupe {
namespace {
thread_local std::string_view check_context;
}

void set_check_context(std::string_view context) { check_context = context; }

void check_failed(const char* condition, const char* reason, const char* file, int line) {
  std::fprintf(stderr, "troupe: check failed: %s (%s) at %s:%d%s%.*s\n", condition, reason, file, line,
               check_context.empty() ? "" : ", in ", static_cast<int>(check_context.size()), check_context.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace troupe
