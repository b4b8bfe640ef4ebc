// What other parts of the project will define: each refuses by name until then.

#include "jobs/job.hpp"

namespace troupe::jobs {
namespace {

Error unfinished(const char* what) { return {ErrorCode::unsupported, std::string(what) + ": this build does not have it"}; }

}  // namespace

Result<int> replay_run(const ReplayRequest&) { return unfinished("replay"); }
Result<int> inspect_run(const std::filesystem::path&, bool) { return unfinished("inspect"); }
Result<int> recover_run(const std::filesystem::path&) { return unfinished("recover"); }

}  // namespace troupe::jobs
