#include "jobs/cli/compute.hpp"


#include "jobs/compute.hpp"

namespace troupe::jobs::cli {

void ComputeOptions::add_to(CLI::App& command) {
  command.add_option("--batch", batch, "most sequences computed at once")->check(CLI::Range(1U, 65536U))->capture_default_str();
  command.add_option("--threads", threads, "compute threads; 0: the cores there are")->check(CLI::Range(0U, 1024U))->capture_default_str();
  command.add_option("--simd", simd, "instruction set: auto, avx2 or avx512")->capture_default_str();
}

Result<std::unique_ptr<models::ThreadPool>> ComputeOptions::start() const { return start_compute(threads, simd); }

}  // namespace troupe::jobs::cli
