#pragma once

#include <hdf5.h>

#include <string>
#include <utility>

// HDF5's C interface behind owners and one exception, for this folder's sources only. The exception never leaves a public function.
namespace troupe::record::hdf5 {

struct Failure {
  std::string detail;
};

/// Throws Failure with what HDF5 said last, for a negative return.
template <class T>
T check(T returned, const std::string& what);
[[noreturn]] void fail(const std::string& what);

/// Any HDF5 identifier; H5Idec_ref closes it by its kind.
class Handle {
 public:
  Handle() = default;
  Handle(hid_t id, const std::string& what) : id_(check(id, what)) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) H5Idec_ref(id_);
  }
  hid_t id() const { return id_; }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

template <class T>
T check(T returned, const std::string& what) {
  if (returned < 0) fail(what);
  return returned;
}

/// Stops HDF5 from printing its errors; once per thread.
void silence();

}  // namespace troupe::record::hdf5
