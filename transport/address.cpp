#include "transport/address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>

#include "actors/base/bytes.hpp"

namespace troupe::transport {
namespace {

constexpr int kBacklog = 1024;

Error refused(std::string_view what) { return Error{ErrorCode::io, fmt::format("{}: {}", what, std::strerror(errno))}; }

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::string machine_id(const std::string& host) {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  std::array<char, 64> mounts{};
  if (readlink("/proc/self/ns/mnt", mounts.data(), mounts.size() - 1) < 0) mounts[0] = '\0';
  return fmt::format("{} {} {}", host, boot, mounts.data());
}

std::string text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bits = address->sa_family == AF_INET ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr)
                                                   : static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
  return inet_ntop(address->sa_family, bits, text.data(), text.size()) == nullptr ? "" : text.data();
}

bool is_usable(const ifaddrs& entry, const std::string& prefix) {
  if (entry.ifa_addr == nullptr || (entry.ifa_flags & IFF_UP) == 0 || !std::string_view(entry.ifa_name).starts_with(prefix)) return false;
  if (entry.ifa_addr->sa_family == AF_INET) return true;
  // Link-local addresses of IPv6 mean nothing without the receiver's interface.
  return entry.ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(entry.ifa_addr)->sin6_addr);
}

std::vector<std::string> own_ips(const std::string& prefix) {
  std::vector<std::string> ips;
  std::vector<std::string> loopback;
  ifaddrs* entries = nullptr;
  if (getifaddrs(&entries) != 0) return {"127.0.0.1"};
  for (const ifaddrs* entry = entries; entry != nullptr; entry = entry->ifa_next) {
    if (!is_usable(*entry, prefix)) continue;
    ((entry->ifa_flags & IFF_LOOPBACK) != 0 ? loopback : ips).push_back(text_of(entry->ifa_addr));
  }
  freeifaddrs(entries);
  // IPv4 first: it is what cluster networks surely route.
  std::ranges::stable_sort(ips, {}, [](const std::string& ip) { return ip.find(':') != std::string::npos; });
  ips.insert(ips.end(), loopback.begin(), loopback.end());
  return ips;
}

// The address's bits; empty for what is none.
Bytes bits_of(const std::string& ip) {
  Bytes bits(sizeof(in6_addr));
  if (inet_pton(AF_INET, ip.c_str(), bits.data()) == 1) {
    bits.resize(sizeof(in_addr));
    return bits;
  }
  return inet_pton(AF_INET6, ip.c_str(), bits.data()) == 1 ? bits : Bytes{};
}

int shared_bits(const Bytes& a, const Bytes& b) {
  if (a.size() != b.size()) return 0;
  int shared = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const int equal = std::countl_zero(std::to_integer<std::uint8_t>(a[i] ^ b[i]));
    shared += equal;
    if (equal < 8) break;
  }
  return shared;
}

}  // namespace

void sort_by_nearness(std::vector<std::string>& ips, const std::vector<std::string>& own_ips) {
  const auto nearness = [&own_ips](const std::string& ip) {
    int best = 0;
    for (const std::string& own : own_ips) {
      if (own == ip) return -1;
      best = std::max(best, shared_bits(bits_of(own), bits_of(ip)));
    }
    return best;
  };
  std::ranges::stable_sort(ips, std::greater<>{}, nearness);
}

Result<std::unique_ptr<Listeners>> Listeners::open(const ListenOptions& options) {
  std::unique_ptr<Listeners> listeners(new Listeners);
  listeners->address_.host = host_name();
  listeners->address_.machine = machine_id(listeners->address_.host);
  if (options.unix_socket) {
    if (auto opened = listeners->open_unix(); !opened) return std::move(opened).error();
  }
  if (options.tcp) {
    if (auto opened = listeners->open_tcp(); !opened) return std::move(opened).error();
    listeners->address_.ips = own_ips(options.interface);
    if (listeners->address_.ips.empty()) {
      return Error{ErrorCode::bad_input, fmt::format("link: no interface that is up has a name beginning with '{}'", options.interface)};
    }
  }
  return listeners;
}

Listeners::~Listeners() {
  if (unix_fd_ >= 0) close(unix_fd_);
  if (tcp_fd_ >= 0) close(tcp_fd_);
  if (folder_.empty()) return;
  unlink(address_.unix_path.c_str());
  rmdir(folder_.c_str());
}

Result<void> Listeners::open_unix() {
  const char* base = std::getenv("TMPDIR");
  sockaddr_un name{};
  // A path of a socket has 107 bytes at most; a longer TMPDIR (Slurm likes them) is passed over for /tmp.
  std::string folder = fmt::format("{}/troupe-XXXXXX", base == nullptr || std::strlen(base) > sizeof(name.sun_path) - 32 ? "/tmp" : base);
  if (mkdtemp(folder.data()) == nullptr) return refused("link: a folder for the Unix socket, " + folder);
  folder_ = folder;
  address_.unix_path = folder + "/link";
  name.sun_family = AF_UNIX;
  std::ranges::copy(address_.unix_path, name.sun_path);
  unix_fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (unix_fd_ < 0 || bind(unix_fd_, reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0 || listen(unix_fd_, kBacklog) != 0) {
    return refused("link: Unix socket " + address_.unix_path);
  }
  return {};
}

Result<void> Listeners::open_tcp() {
  // One socket for both families; without IPv6 in the kernel, IPv4 alone.
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  const sockaddr* any = reinterpret_cast<const sockaddr*>(&six);
  socklen_t any_bytes = sizeof(six);
  tcp_fd_ = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int no = 0;
  if (tcp_fd_ < 0 || setsockopt(tcp_fd_, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no)) != 0 || bind(tcp_fd_, any, any_bytes) != 0) {
    if (tcp_fd_ >= 0) close(tcp_fd_);
    any = reinterpret_cast<const sockaddr*>(&four);
    any_bytes = sizeof(four);
    tcp_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (tcp_fd_ < 0 || bind(tcp_fd_, any, any_bytes) != 0) return refused("link: TCP socket");
    tcp_v6_ = false;
  }
  sockaddr_storage bound{};
  socklen_t bound_bytes = sizeof(bound);
  if (listen(tcp_fd_, kBacklog) != 0 || getsockname(tcp_fd_, reinterpret_cast<sockaddr*>(&bound), &bound_bytes) != 0)
    return refused("link: TCP socket");
  address_.tcp_port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port
                                                        : reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
  return {};
}

}  // namespace troupe::transport
