#include "transport/address.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actors/base/wire.hpp"

namespace troupe::testing {
namespace {

using namespace transport;
using Ips = std::vector<std::string>;

Ips sorted(Ips ips, const Ips& own) {
  sort_by_nearness(ips, own);
  return ips;
}

TEST(Address, OfACommonNetworkComesFirst) {
  EXPECT_EQ(sorted({"172.20.0.4", "fd00::4", "10.1.0.4", "10.1.7.4"}, {"10.1.7.3", "192.168.0.3"}),
            (Ips{"10.1.7.4", "10.1.0.4", "172.20.0.4", "fd00::4"}));
}

TEST(Address, ThatBothHostsHaveComesLast) {
  EXPECT_EQ(sorted({"172.17.0.1", "10.1.7.4", "192.168.5.1"}, {"172.17.0.1", "10.1.7.3"}), (Ips{"10.1.7.4", "192.168.5.1", "172.17.0.1"}));
}

TEST(Address, KeepsItsOrderWhereNothingIsKnown) {
  EXPECT_EQ(sorted({"203.0.113.9", "not an address", "198.51.100.9"}, {}), (Ips{"203.0.113.9", "not an address", "198.51.100.9"}));
}

TEST(Address, CrossesTheWire) {
  const LinkAddress address{
      .host = "node7", .machine = "node7 boot", .unix_path = "/tmp/x/link", .ips = {"10.0.0.7", "fd00::7"}, .tcp_port = 4242};
  Bytes bytes;
  encode(bytes, address);
  const auto read = decode<LinkAddress>(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->host + read->machine + read->unix_path, address.host + address.machine + address.unix_path);
  EXPECT_EQ(read->ips, address.ips);
  EXPECT_EQ(read->tcp_port, address.tcp_port);
}

TEST(Listeners, KeepTheirSocketInAPrivateFolderAndRemoveIt) {
  std::string path;
  std::string folder;
  {
    const auto listeners = Listeners::open();
    ASSERT_TRUE(listeners) << listeners.error().detail;
    path = (*listeners)->address().unix_path;
    folder = path.substr(0, path.rfind('/'));
    struct stat status {};
    ASSERT_EQ(::stat(folder.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0700U);
    EXPECT_EQ(::access(path.c_str(), F_OK), 0);
    EXPECT_NE((*listeners)->address().tcp_port, 0);
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
  EXPECT_NE(::access(folder.c_str(), F_OK), 0);
}

TEST(Listeners, SayThatNoInterfaceHasTheWantedName) {
  const auto listeners = Listeners::open({.unix_socket = true, .tcp = true, .interface = "nosuch"});
  ASSERT_FALSE(listeners);
  EXPECT_NE(listeners.error().detail.find("'nosuch'"), std::string::npos);
}

}  // namespace
}  // namespace troupe::testing
