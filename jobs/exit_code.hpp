#pragma once

#include "actors/base/error.hpp"

namespace troupe::jobs {

/// The exit code for an error that ends a command: 2 for bad input and what is not there, 1 for what failed on the way.
int exit_code(const Error& error);

/// Prints the error's one line on stderr, on rank 0 alone; its exit code.
int print_error(const Error& error);

}  // namespace troupe::jobs
