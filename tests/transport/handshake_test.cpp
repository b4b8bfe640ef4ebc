#include "transport/handshake.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "actors/actor_ref.hpp"

namespace troupe::testing {
namespace {

using namespace transport;

Membership member(std::uint32_t rank) {
  Membership membership{.rank = Rank{rank}, .size = 4, .job = {}, .secret = {}, .build = 99};
  membership.secret.fill(std::byte{1});
  membership.job.fill(std::byte{2});
  return membership;
}

Nonce nonce(unsigned value) {
  Nonce filled;
  filled.fill(static_cast<std::byte>(value));
  return filled;
}

struct Outcome {
  Result<void> connecting;
  Result<void> accepting;
  bool both_done = false;
};

// Carries the bytes both ways; `change(message, bytes)` sees the four messages, 0 to 3, on their way.
Outcome shake(
    Handshake& connecting, Handshake& accepting, const std::function<void(int, Bytes&)>& change = [](int, Bytes&) {}) {
  Outcome outcome;
  int message = 0;
  while (outcome.connecting && outcome.accepting) {
    Bytes there = connecting.take_output();
    if (!there.empty()) {
      change(message++, there);
      outcome.accepting = accepting.feed(there);
    }
    Bytes back = accepting.take_output();
    if (!back.empty()) {
      change(message++, back);
      outcome.connecting = connecting.feed(back);
    } else if (there.empty()) {
      break;
    }
  }
  outcome.both_done = connecting.is_done() && accepting.is_done();
  return outcome;
}

Outcome shake(const Membership& connecting, Rank to, const Membership& accepting) {
  Handshake one = Handshake::connecting(connecting, to, nonce(3));
  Handshake other = Handshake::accepting(accepting, nonce(4));
  return shake(one, other);
}

TEST(Handshake, LetsTwoRanksOfAJobLink) {
  Handshake one = Handshake::connecting(member(2), Rank{1}, nonce(3));
  Handshake other = Handshake::accepting(member(1), nonce(4));
  const Outcome outcome = shake(one, other);
  EXPECT_TRUE(outcome.both_done);
  EXPECT_EQ(other.peer(), Rank{2});
  EXPECT_EQ(one.wanted_bytes() + other.wanted_bytes(), 0U);
}

TEST(Handshake, RefusesAnotherSecretOnBothSides) {
  Membership stranger = member(2);
  stranger.secret[31] ^= std::byte{1};
  Outcome outcome = shake(stranger, Rank{1}, member(1));
  EXPECT_FALSE(outcome.both_done);
  EXPECT_EQ(outcome.connecting.error().code, ErrorCode::unauthorised);

  // A stranger that does not check, and answers with a proof of its own making.
  Handshake liar = Handshake::connecting(stranger, Rank{1}, nonce(3));
  Handshake honest = Handshake::accepting(member(1), nonce(4));
  ASSERT_TRUE(honest.feed(liar.take_output()));
  const Result<void> fed = honest.feed(Bytes(Handshake::kProofBytes));
  EXPECT_EQ(fed.error().code, ErrorCode::unauthorised);
  EXPECT_TRUE(honest.take_output().empty() || !honest.is_done());
}

TEST(Handshake, SaysWhatDiffersToBothSides) {
  Membership other_build = member(2);
  other_build.build = 100;
  const Outcome outcome = shake(other_build, Rank{1}, member(1));
  EXPECT_EQ(outcome.accepting.error().code, ErrorCode::unsupported);
  Membership other_job = member(2);
  other_job.job[0] ^= std::byte{1};
  EXPECT_EQ(shake(other_job, Rank{1}, member(1)).accepting.error().code, ErrorCode::unauthorised);
  Membership other_size = member(2);
  other_size.size = 5;
  EXPECT_EQ(shake(other_size, Rank{1}, member(1)).accepting.error().code, ErrorCode::bad_input);
}

TEST(Handshake, TellsTheConnectingSideWhyItIsRefused) {
  Membership other_build = member(2);
  other_build.build = 100;
  Handshake one = Handshake::connecting(other_build, Rank{1}, nonce(3));
  Handshake other = Handshake::accepting(member(1), nonce(4));
  EXPECT_FALSE(other.feed(one.take_output()));
  const Result<void> told = one.feed(other.take_output());
  EXPECT_EQ(told.error().code, ErrorCode::unsupported);
  EXPECT_NE(told.error().detail.find("same program"), std::string::npos);
}

TEST(Handshake, BindsTheRanks) {
  EXPECT_FALSE(shake(member(2), Rank{3}, member(1)).both_done) << "a door that is another rank's";
  EXPECT_FALSE(shake(member(1), Rank{1}, member(1)).both_done) << "itself";
  EXPECT_FALSE(shake(member(4), Rank{1}, member(1)).both_done) << "a rank beyond the job's";
}

TEST(Handshake, RefusesEveryChangedByte) {
  const std::array<std::size_t, 4> sizes{Handshake::kHelloBytes, Handshake::kHelloBytes + Handshake::kProofBytes, Handshake::kProofBytes,
                                         Handshake::kWelcomeBytes};
  for (int target = 0; target < 4; ++target) {
    for (std::size_t at = 0; at < sizes[static_cast<std::size_t>(target)]; ++at) {
      Handshake one = Handshake::connecting(member(2), Rank{1}, nonce(3));
      Handshake other = Handshake::accepting(member(1), nonce(4));
      const Outcome outcome = shake(one, other, [&](int message, Bytes& bytes) {
        if (message == target) bytes[at] ^= std::byte{0x10};
      });
      EXPECT_FALSE(outcome.both_done) << "message " << target << ", byte " << at;
    }
  }
}

TEST(Handshake, RefusesAReplayedProof) {
  Bytes heard;
  Handshake one = Handshake::connecting(member(2), Rank{1}, nonce(3));
  Handshake other = Handshake::accepting(member(1), nonce(4));
  Bytes hello;
  shake(one, other, [&](int message, Bytes& bytes) {
    if (message == 0) hello = bytes;
    if (message == 2) heard = bytes;
  });
  Handshake later = Handshake::accepting(member(1), nonce(5));
  ASSERT_TRUE(later.feed(hello));
  EXPECT_FALSE(later.feed(heard));
}

TEST(Handshake, RefusesAReflectedProof) {
  // A stranger without the secret opens a second connection to have its challenge answered there: labels and ranks forbid it.
  Handshake honest = Handshake::accepting(member(1), nonce(4));
  Handshake asked = Handshake::connecting(member(2), Rank{1}, nonce(3));
  ASSERT_TRUE(honest.feed(asked.take_output()));
  const Bytes answer = honest.take_output();
  EXPECT_FALSE(honest.feed(BytesView(answer).subspan(Handshake::kHelloBytes)));
}

TEST(Handshake, TellsStrangersNothing) {
  Handshake honest = Handshake::accepting(member(1), nonce(4));
  EXPECT_EQ(honest.feed(Bytes(Handshake::kHelloBytes, std::byte{'G'})).error().code, ErrorCode::corrupt);
  EXPECT_TRUE(honest.take_output().empty());
}

TEST(BuildId, IsTheSameInEveryCall) {
  EXPECT_NE(build_id(), 0U);
  EXPECT_EQ(build_id(), build_id());
}

}  // namespace
}  // namespace troupe::testing
