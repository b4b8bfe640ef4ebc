#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/base/error.hpp"
#include "actors/base/fields.hpp"

namespace troupe::transport {

/// Where a rank's link listens.
struct LinkAddress {
  std::string host;              ///< the host's name, for people
  std::string machine;           ///< host name, boot and mount namespace: equal where a Unix socket's path means the same
  std::string unix_path;         ///< empty: none
  std::vector<std::string> ips;  ///< of interfaces that are up, loopback last
  std::uint16_t tcp_port = 0;    ///< 0: none

  TROUPE_FIELDS(host, machine, unix_path, ips, tcp_port)
};

/// Orders another host's addresses by how likely they are to be reached from a host with `own_ips`: those of a common network first, by
/// the bits that they share; last those that both have (bridges of containers are the same everywhere, and lead back here).
void sort_by_nearness(std::vector<std::string>& ips, const std::vector<std::string>& own_ips);

struct ListenOptions {
  bool unix_socket = true;
  bool tcp = true;
  std::string interface;  ///< only interfaces whose name begins so; empty: all
};

/// Listening sockets of this process: a Unix socket in a private folder (mode 0700) and a TCP port. Removes the folder at its end.
class Listeners {
 public:
  /// Errors: io, with what the operating system refused.
  static Result<std::unique_ptr<Listeners>> open(const ListenOptions& options = {});
  ~Listeners();
  Listeners(const Listeners&) = delete;
  Listeners& operator=(const Listeners&) = delete;

  const LinkAddress& address() const { return address_; }
  /// The descriptors, −1 for none; the caller owns them from then on.
  int release_unix() { return std::exchange(unix_fd_, -1); }
  int release_tcp() { return std::exchange(tcp_fd_, -1); }
  bool is_tcp_v6() const { return tcp_v6_; }

 private:
  Listeners() = default;
  Result<void> open_unix();
  Result<void> open_tcp();

  LinkAddress address_;
  std::string folder_;
  int unix_fd_ = -1;
  int tcp_fd_ = -1;
  bool tcp_v6_ = true;
};

}  // namespace troupe::transport
