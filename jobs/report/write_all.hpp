#pragma once

#include <unistd.h>

#include <string_view>

namespace troupe::jobs {

/// False with errno when not all could be written; a disk that fills takes a part first and says so on the next call.
inline bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace troupe::jobs
