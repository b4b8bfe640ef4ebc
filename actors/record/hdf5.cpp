#include "actors/record/hdf5.hpp"

namespace troupe::record::hdf5 {
namespace {

herr_t keep_innermost(unsigned depth, const H5E_error2_t* error, void* out) {
  if (depth == 0 && error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
  return 0;
}

}  // namespace

void fail(const std::string& what) {
  std::string said = "no reason given";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, &keep_innermost, &said);
  throw Failure{what + ": " + said};
}

void silence() {
  thread_local const bool silenced = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
  (void)silenced;
}

}  // namespace troupe::record::hdf5
