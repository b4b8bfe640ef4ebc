#include "jobs/debug/channel.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe::jobs::debug {
namespace {

Error lost() { return {ErrorCode::peer_lost, "debugger: a process of the re-execution is gone"}; }
Error failed(const char* what) { return {ErrorCode::io, fmt::format("debugger: {}: {}", what, std::strerror(errno))}; }

Result<void> write_all(int to, BytesView bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno == EPIPE || errno == ECONNRESET ? lost() : failed("send");
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
  return {};
}

Result<void> read_all(int from, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::recv(from, bytes.data(), bytes.size(), 0);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno == ECONNRESET ? lost() : failed("receive");
    if (done == 0) return lost();
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
  return {};
}

/// The first bytes of a message: its length, with which a descriptor may come.
struct Head {
  std::uint64_t length = 0;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  iovec part{&length, sizeof(length)};
  msghdr header() {
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    return header;
  }
};

}  // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) ::close(number_);
}

Result<std::pair<Channel, Channel>> Channel::pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return failed("socketpair");
  return std::pair(Channel(Descriptor(ends[0])), Channel(Descriptor(ends[1])));
}

Result<void> Channel::send(BytesView message, const Descriptor* attached) {
  Head head;
  head.length = message.size();
  msghdr header = head.header();
  if (attached != nullptr) {
    header.msg_control = head.control;
    header.msg_controllen = sizeof(head.control);
    cmsghdr* control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = attached->get();
    std::memcpy(CMSG_DATA(control), &number, sizeof(number));
  }
  ssize_t done = 0;
  do {
    done = ::sendmsg(descriptor_.get(), &header, MSG_NOSIGNAL);
  } while (done < 0 && errno == EINTR);
  if (done < 0) return errno == EPIPE || errno == ECONNRESET ? lost() : failed("send");
  const auto sent = static_cast<std::size_t>(done);
  if (Result<void> rest = write_all(descriptor_.get(), std::as_bytes(std::span(&head.length, 1)).subspan(sent)); !rest) return rest;
  return write_all(descriptor_.get(), message);
}

Result<Bytes> Channel::receive(Descriptor* attached) {
  Head head;
  msghdr header = head.header();
  header.msg_control = head.control;
  header.msg_controllen = sizeof(head.control);
  ssize_t done = 0;
  do {
    done = ::recvmsg(descriptor_.get(), &header, MSG_CMSG_CLOEXEC);
  } while (done < 0 && errno == EINTR);
  if (done == 0 || (done < 0 && errno == ECONNRESET)) return lost();
  if (done < 0) return failed("receive");
  if (const cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr && control->cmsg_type == SCM_RIGHTS) {
    int number = -1;
    std::memcpy(&number, CMSG_DATA(control), sizeof(number));
    Descriptor came(number);
    if (attached != nullptr) *attached = std::move(came);
  }
  const auto came = static_cast<std::size_t>(done);
  if (Result<void> rest = read_all(descriptor_.get(), std::as_writable_bytes(std::span(&head.length, 1)).subspan(came)); !rest) return rest.error();
  Bytes message(head.length);
  if (Result<void> rest = read_all(descriptor_.get(), message); !rest) return rest.error();
  return message;
}

}  // namespace troupe::jobs::debug
