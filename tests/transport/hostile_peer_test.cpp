// What a link does about strangers, broken peers and peers that take nothing. The test plays them over real sockets.

#include <gtest/gtest.h>

#include <chrono>

#include "transport/link_world.hpp"
#include "transport/stranger.hpp"

namespace troupe::testing {
namespace {

using namespace std::chrono_literals;
using transport::FrameHeader;
using transport::FrameKind;
using transport::Membership;

constexpr Rank kZero{0};
constexpr Rank kOne{1};
constexpr Rank kTwo{2};

// A peer that is played does not say goodbye, so stops need not wait for it.
AsioLinkOptions impatient() {
  AsioLinkOptions options;
  options.stop_deadline = 20ms;
  return options;
}

/// Ranks 0 and 1 are linked; rank 2's place is free, so that rank 0 listens still.
class OpenPlace : public ::testing::TestWithParam<LinkWorld::Over> {
 protected:
  void begin(AsioLinkOptions options = impatient()) {
    world = std::make_unique<LinkWorld>(3, GetParam(), std::move(options));
    world->open(0);
    world->open(1);
    world->start(0);
    world->start(1);
    exchange();
  }
  void exchange() {
    ++exchanged_;
    ASSERT_TRUE(world->links[0]->send(kOne, numbered(exchanged_)));
    ASSERT_TRUE(world->links[1]->send(kZero, numbered(exchanged_)));
    ASSERT_TRUE(world->sinks[0].wait_for(kOne, exchanged_));
    ASSERT_TRUE(world->sinks[1].wait_for(kZero, exchanged_));
  }
  const transport::LinkAddress& door() const { return world->addresses()[0]; }
  AsioLink& link() { return *world->links[0]; }
  KeepingSink& sink() { return world->sinks[0]; }

  std::unique_ptr<LinkWorld> world;

 private:
  std::size_t exchanged_ = 0;
};
INSTANTIATE_TEST_SUITE_P(, OpenPlace, ::testing::Values(LinkWorld::Over::unix_socket, LinkWorld::Over::tcp),
                         [](const auto& param) { return param.param == LinkWorld::Over::tcp ? "Tcp" : "UnixSocket"; });

TEST_P(OpenPlace, ClosesStrangersAndGoesOn) {
  begin();
  {
    Stranger garbage(door());
    garbage.write(Bytes(500, std::byte{'x'}));
    EXPECT_TRUE(garbage.is_closed());
    Stranger half(door());
    half.write(Bytes(10, std::byte{'T'}));
  }
  Membership thief = world->membership(2);
  thief.secret[0] ^= std::byte{1};
  Stranger wrong_secret(door());
  EXPECT_FALSE(wrong_secret.join(thief, kZero)) << "rank 0 does not hold the thief's secret either";
  wrong_secret.write(Bytes(transport::Handshake::kProofBytes, std::byte{1}));
  EXPECT_TRUE(wrong_secret.is_closed());
  exchange();

  world->open(2);
  world->start(2);
  EXPECT_TRUE(link().await_peers());
  ASSERT_TRUE(world->links[2]->send(kZero, numbered(5)));
  EXPECT_TRUE(sink().wait_for(kTwo, 1));
  EXPECT_EQ(sink().lost_count(), 0U);
}

TEST_P(OpenPlace, ClosesAStrangerThatSaysNothing) {
  AsioLinkOptions options = impatient();
  options.handshake_deadline = 30ms;
  begin(options);
  Stranger silent(door());
  EXPECT_TRUE(silent.is_closed());
  exchange();
}

TEST_P(OpenPlace, LetsARankInThoughManyStrangersWait) {
  begin();
  std::vector<std::unique_ptr<Stranger>> crowd;
  for (int i = 0; i < 200; ++i) crowd.push_back(std::make_unique<Stranger>(door()));
  world->open(2);
  EXPECT_TRUE(link().await_peers());
}

TEST_P(OpenPlace, KeepsTheFirstConnectionOfARank) {
  begin();
  Stranger again(door());
  EXPECT_TRUE(again.join(world->membership(1), kZero)) << "it is proven, but its place is taken";
  EXPECT_TRUE(again.is_closed());
  exchange();
}

TEST_P(OpenPlace, ClosesOnlyThePeerThatSendsGarbage) {
  begin();
  Stranger peer(door());
  ASSERT_TRUE(peer.join(world->membership(2), kZero));
  peer.write(Bytes(100, std::byte{'x'}));
  EXPECT_TRUE(peer.is_closed());
  ASSERT_TRUE(sink().wait_lost(kTwo));
  EXPECT_NE(sink().lost(kTwo)[0].detail.find("magic"), std::string::npos) << sink().lost(kTwo)[0].detail;
  exchange();
  EXPECT_EQ(sink().lost_count(), 1U);
}

TEST_P(OpenPlace, NamesThePeerThatBreaksOffWithinAFrame) {
  begin();
  {
    Stranger peer(door());
    ASSERT_TRUE(peer.join(world->membership(2), kZero));
    FrameHeader header;
    header.payload_bytes = 1 << 30;
    peer.write(header);
    peer.write(Bytes(1000));
  }
  ASSERT_TRUE(sink().wait_lost(kTwo));
  const Error reason = sink().lost(kTwo)[0];
  EXPECT_EQ(reason.code, ErrorCode::peer_lost);
  EXPECT_NE(reason.detail.find("rank 2 ("), std::string::npos) << reason.detail;
  EXPECT_NE(reason.detail.find("within a frame"), std::string::npos) << reason.detail;
  EXPECT_NE(reason.detail.find("1072 bytes received"), std::string::npos) << reason.detail;
  const auto refused = link().send(kTwo, numbered(1));
  EXPECT_EQ(refused.error().code, ErrorCode::peer_lost);
  EXPECT_EQ(refused.error().detail, reason.detail);
}

TEST_P(OpenPlace, DeliversWhatALostPeerSentBefore) {
  begin();
  {
    Stranger peer(door());
    ASSERT_TRUE(peer.join(world->membership(2), kZero));
    for (int i = 0; i < 20; ++i) peer.write(FrameHeader{});
  }
  ASSERT_TRUE(sink().wait_lost(kTwo));
  EXPECT_EQ(sink().received(kTwo).size(), 20U);
}

TEST_P(OpenPlace, LosesAPeerThatGivesNoSignOfLife) {
  AsioLinkOptions options = impatient();
  options.heartbeat = 5ms;
  options.silence = 50ms;
  begin(options);
  Stranger peer(door());
  ASSERT_TRUE(peer.join(world->membership(2), kZero));
  ASSERT_TRUE(sink().wait_lost(kTwo));
  EXPECT_NE(sink().lost(kTwo)[0].detail.find("no sign of life"), std::string::npos);
  EXPECT_EQ(sink().lost_count(), 1U) << "rank 1 sends heartbeats";
}

TEST_P(OpenPlace, SendsHeartbeatsWhenItHasNothingToSay) {
  AsioLinkOptions options = impatient();
  options.heartbeat = 2ms;
  options.silence = 10s;
  begin(options);
  Stranger peer(door());
  ASSERT_TRUE(peer.join(world->membership(2), kZero));
  for (int i = 0; i < 10; ++i) {
    const auto header = transport::parse_header(peer.read(transport::kFrameHeaderBytes));
    ASSERT_TRUE(header) << header.error().detail;
    EXPECT_EQ(header->frame, FrameKind::heartbeat);
  }
}

TEST_P(OpenPlace, BoundsWhatWaitsForAPeerThatReadsNothing) {
  AsioLinkOptions options = impatient();
  options.soft_bytes_max = 1 << 20;
  options.hard_bytes_max = 4 << 20;
  begin(options);
  Stranger peer(door());
  ASSERT_TRUE(peer.join(world->membership(2), kZero));
  std::size_t sent_bytes = 0;
  Result<void> sent{};
  for (std::uint64_t i = 0; i < 10'000 && sent; ++i) {
    sent = link().send(kTwo, numbered(i, 50'000));
    if (sent) sent_bytes += transport::kFrameHeaderBytes + 50'000;
    ASSERT_LE(link().queued_bytes(kTwo), options.hard_bytes_max);
  }
  EXPECT_EQ(sent.error().code, ErrorCode::mailbox_full);
  EXPECT_TRUE(link().is_congested(kTwo));
  exchange();

  std::size_t got = 0;
  while (got < sent_bytes) got += peer.read(std::min<std::size_t>(sent_bytes - got, 1 << 20)).size();
  EXPECT_TRUE(sink().wait_relief());
  EXPECT_FALSE(link().is_congested(kTwo));
  EXPECT_TRUE(link().send(kTwo, numbered(1)));
}

TEST_P(OpenPlace, LetsOneMessageAboveTheHardLimitPass) {
  AsioLinkOptions options = impatient();
  options.soft_bytes_max = 1000;
  options.hard_bytes_max = 4000;
  begin(options);
  ASSERT_TRUE(link().send(kOne, numbered(9, 1 << 20)));
  ASSERT_TRUE(world->sinks[1].wait_for(kZero, 2));
  EXPECT_EQ(world->sinks[1].received(kZero)[1].payload.size(), 1U << 20);
}

TEST_P(OpenPlace, RefusesAPayloadAboveTheLimit) {
  AsioLinkOptions options = impatient();
  options.payload_bytes_max = 100;
  begin(options);
  EXPECT_TRUE(link().send(kOne, numbered(1, 100)));
  EXPECT_EQ(link().send(kOne, numbered(1, 101)).error().code, ErrorCode::bad_input);
}

TEST_P(OpenPlace, TakesAGoodbyeForNoLoss) {
  begin();
  Stranger peer(door());
  ASSERT_TRUE(peer.join(world->membership(2), kZero));
  FrameHeader goodbye;
  goodbye.frame = FrameKind::goodbye;
  peer.write(goodbye);
  EXPECT_TRUE(peer.is_closed());
  EXPECT_EQ(sink().lost_count(), 0U);
  EXPECT_EQ(link().send(kTwo, numbered(1)).error().code, ErrorCode::peer_lost);
}

TEST_P(OpenPlace, RelievesThoseWhoWaitForAPeerThatLeaves) {
  AsioLinkOptions options = impatient();
  options.soft_bytes_max = 4 << 20;
  begin(options);
  Stranger peer(door());
  ASSERT_TRUE(peer.join(world->membership(2), kZero));
  while (!link().is_congested(kTwo)) ASSERT_TRUE(link().send(kTwo, numbered(1, 50'000)));
  FrameHeader goodbye;
  goodbye.frame = FrameKind::goodbye;
  peer.write(goodbye);
  EXPECT_TRUE(sink().wait_relief());
  EXPECT_EQ(link().send(kTwo, numbered(1)).error().code, ErrorCode::peer_lost);
}

TEST(Link, SaysThatARankRunsAnotherProgram) {
  LinkWorld world(2, LinkWorld::Over::unix_socket, impatient());
  world.open(0);
  Membership other = world.membership(1);
  other.build = 18;
  const auto linked = world.open(1, other).await_peers();
  ASSERT_FALSE(linked);
  EXPECT_NE(linked.error().detail.find("same program"), std::string::npos) << linked.error().detail;
}

TEST(Link, GivesUpOnARankThatDoesNotCome) {
  AsioLinkOptions options = impatient();
  options.connect_deadline = 20ms;
  options.heartbeat = 5ms;
  LinkWorld world(2, LinkWorld::Over::tcp, options);
  const auto linked = world.open(0).await_peers();
  ASSERT_FALSE(linked);
  EXPECT_NE(linked.error().detail.find("did not connect"), std::string::npos) << linked.error().detail;
  // Rank 0 has stopped listening by now.
  const auto reached = world.open(1).await_peers();
  ASSERT_FALSE(reached);
  EXPECT_NE(reached.error().detail.find("refused"), std::string::npos) << reached.error().detail;
}

TEST(LinkDeathTest, TakesASendToItselfForABug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  LinkWorld world(1);
  world.open(0);
  EXPECT_DEATH((void)world.links[0]->send(kZero, numbered(1)), "other ranks");
}

}  // namespace
}  // namespace troupe::testing
