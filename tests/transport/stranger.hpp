#pragma once

// A peer that is no link of ours: blocking sockets, and whatever bytes a test wants.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "transport/address.hpp"
#include "transport/frame.hpp"
#include "transport/handshake.hpp"

namespace troupe::testing {

class Stranger {
 public:
  explicit Stranger(const transport::LinkAddress& address) {
    if (!address.unix_path.empty()) {
      sockaddr_un name{};
      name.sun_family = AF_UNIX;
      std::ranges::copy(address.unix_path, name.sun_path);
      connect_to(AF_UNIX, reinterpret_cast<const sockaddr*>(&name), sizeof(name));
    } else {
      sockaddr_in name{};
      name.sin_family = AF_INET;
      name.sin_port = htons(address.tcp_port);
      name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      connect_to(AF_INET, reinterpret_cast<const sockaddr*>(&name), sizeof(name));
    }
  }
  ~Stranger() { ::close(fd_); }
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  void write(BytesView bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (written <= 0) return;
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }
  void write(const transport::FrameHeader& header) { write(transport::encode_header(header)); }

  /// Fewer bytes than wanted: the other side has closed.
  Bytes read(std::size_t wanted) {
    Bytes bytes(wanted);
    std::size_t got = 0;
    while (got < wanted) {
      const ssize_t more = ::recv(fd_, bytes.data() + got, wanted - got, 0);
      if (more <= 0) break;
      got += static_cast<std::size_t>(more);
    }
    bytes.resize(got);
    return bytes;
  }
  /// Waits until the other side has closed the connection.
  bool is_closed() {
    while (!read(4096).empty()) {
    }
    return true;
  }

  /// Plays the rank that connects. False: refused.
  bool join(const transport::Membership& own, Rank peer) {
    transport::Handshake handshake = transport::Handshake::connecting(own, peer, {});
    for (;;) {
      write(handshake.take_output());
      if (handshake.wanted_bytes() == 0) return handshake.is_done();
      const Bytes bytes = read(handshake.wanted_bytes());
      if (bytes.size() < handshake.wanted_bytes() || !handshake.feed(bytes)) return false;
    }
  }

 private:
  void connect_to(int family, const sockaddr* name, socklen_t bytes) {
    fd_ = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd_, name, bytes) != 0) ADD_FAILURE() << "cannot connect";
  }
  int fd_ = -1;
};

}  // namespace troupe::testing
