#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>

#include "actors/base/error.hpp"
#include "models/kernels/thread_pool.hpp"

namespace troupe::jobs::cli {

/// --batch, --threads and --simd: none changes a bit of any output.
struct ComputeOptions {
  std::uint32_t batch = 16;
  std::uint32_t threads = 0;
  std::string simd = "auto";

  void add_to(CLI::App& command);
  /// Chooses the kernels' instruction set and starts the threads. Errors: bad_input, unsupported.
  Result<std::unique_ptr<models::ThreadPool>> start() const;
};

}  // namespace troupe::jobs::cli
