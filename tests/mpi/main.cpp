// The main of tests that run under mpirun: every rank runs every test; ranks above 0 print only what fails.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "mpi/world.hpp"

namespace troupe::testing {
namespace {

std::shared_ptr<transport::MpiWorld> entered;

class OnlyFailures : public ::testing::EmptyTestEventListener {
  void OnTestPartResult(const ::testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %d: %s:%d: %s\n", entered->rank(), result.file_name() == nullptr ? "" : result.file_name(), result.line_number(), result.message());
  }
};

}  // namespace

std::shared_ptr<transport::MpiWorld> world() { return entered; }

}  // namespace troupe::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  auto world = troupe::transport::MpiWorld::enter();
  if (!world) {
    std::fprintf(stderr, "%s\n", world.error().detail.c_str());
    return 1;
  }
  troupe::testing::entered = *world;
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if ((*world)->rank() != 0) {
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new troupe::testing::OnlyFailures);
  }
  const int result = RUN_ALL_TESTS();
  // A test that fails may leave others waiting in MPI_Finalize: mpirun ends them when a rank ends with an error.
  if (result != 0) std::_Exit(result);
  (*world)->leave();
  return 0;
}
