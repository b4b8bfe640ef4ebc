#pragma once

#include <string_view>

namespace troupe {

/// Adds a line to what a failed check prints: the rank, the actor that runs, the seed. Set per thread; the view must outlive its use.
void set_check_context(std::string_view context);

[[noreturn]] void check_failed(const char* condition, const char* reason, const char* file, int line);

}  // namespace troupe

/// Our own invariants, on in every build: prints the condition, why it must hold and the thread's context, then aborts.
#define TROUPE_CHECK(condition, reason) \
  (static_cast<bool>(condition) ? void(0) : ::troupe::check_failed(#condition, reason, __FILE__, __LINE__))
