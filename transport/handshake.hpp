#pragma once

#include <array>
#include <cstdint>

#include "actors/base/bytes.hpp"
#include "actors/base/error.hpp"
#include "actors/base/ids.hpp"

namespace troupe::transport {

using Secret = std::array<std::byte, 32>;
using JobId = std::array<std::byte, 16>;
using Nonce = std::array<std::byte, 32>;

/// What all ranks of a job agree on before they link, and who this one is.
struct Membership {
  Rank rank{};
  std::uint32_t size = 1;
  JobId job{};
  Secret secret{};
  std::uint64_t build = 0;
};

/// From the operating system's generator. Errors: io.
Result<void> fill_random(std::span<std::byte> bytes);
/// Of this program: its linker's build id, or else a digest of the executable file.
std::uint64_t build_id();

/// Proves to both ends of a fresh connection that the other one holds the job's secret: an HMAC-SHA256 challenge and response that binds
/// the protocol version, job, build, ranks and both nonces. Holds no socket and no clock: bytes in, bytes out.
///
///   connecting                            accepting
///   hello (76 bytes)                 →
///                                    ←    hello (76), proof (32)
///   proof (32)                       →
///                                    ←    welcome (8)
///
/// An accepting side that refuses after the hello sends its own hello with a proof of zeros, so that the other can say what differs.
/// Use: write take_output(), read exactly wanted_bytes(), feed() them, until wanted_bytes() is 0. After an error write the output, close.
class Handshake {
 public:
  static constexpr std::size_t kHelloBytes = 76;
  static constexpr std::size_t kProofBytes = 32;
  static constexpr std::size_t kWelcomeBytes = 8;

  static Handshake connecting(const Membership& own, Rank peer, const Nonce& nonce);
  static Handshake accepting(const Membership& own, const Nonce& nonce);

  Bytes take_output();
  std::size_t wanted_bytes() const { return wanted_; }
  /// Errors: corrupt (not this protocol), unsupported (another version or build), unauthorised (another job, or a wrong proof),
  /// bad_input (ranks that do not fit).
  Result<void> feed(BytesView bytes);
  bool is_done() const { return state_ == State::done; }
  /// The other side; proven once is_done().
  Rank peer() const { return peer_; }

 private:
  enum class State { connecting_hello, connecting_welcome, accepting_hello, accepting_proof, done, failed };
  using Hello = std::array<std::byte, kHelloBytes>;
  using Proof = std::array<std::byte, kProofBytes>;

  Handshake(const Membership& own, Rank peer, const Nonce& nonce, bool connects);
  Hello own_hello() const;
  Result<void> check_hello(BytesView bytes, bool from_connecting);
  Proof proof(bool of_connecting) const;
  Result<void> feed_unchecked(BytesView bytes);
  Result<void> take_hello(BytesView bytes);
  Result<void> take_proof(BytesView bytes, bool of_connecting);
  void say(BytesView bytes) { output_.insert(output_.end(), bytes.begin(), bytes.end()); }

  Membership own_;
  Rank peer_;
  Nonce nonce_;
  bool connects_;
  State state_;
  std::size_t wanted_;
  Bytes output_;
  std::array<Hello, 2> hellos_{};  ///< the connecting side's, then the accepting side's
};

}  // namespace troupe::transport
