#pragma once

#include <string>

namespace troupe::jobs {

/// For people's eyes and file names only: no result and no message depends on them.
double monotonic_seconds();
/// Since 1970.
double unix_seconds();
/// "20261201-134500", local time.
std::string date_for_names();

}  // namespace troupe::jobs
