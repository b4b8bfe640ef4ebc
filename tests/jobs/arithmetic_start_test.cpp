#include <gtest/gtest.h>

#include "jobs/child.hpp"
#include "jobs/folders.hpp"

namespace troupe::jobs {
namespace {

namespace fs = std::filesystem;

const fs::path kExample = fs::path(TROUPE_SOURCE_DIR) / "jobs" / "examples" / "arithmetic";

Ended troupe(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), TROUPE_BINARY_DIR "/bin/troupe");
  return Child(std::move(arguments)).end();
}

TEST(ArithmeticStart, GivesTheShippedModelsDigest) {
  const TemporaryFolder folder;
  const Ended ended = troupe({"run", (kExample / "sft.toml").string(), "output=" + (folder.path() / "start").string(), "--run", (folder.path() / "run").string()});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(troupe({"digest", (folder.path() / "start").string()}).out, troupe({"digest", (kExample / "start").string()}).out);
}

}  // namespace
}  // namespace troupe::jobs
