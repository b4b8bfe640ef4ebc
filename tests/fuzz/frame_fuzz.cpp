// A stream of arbitrary bytes, in arbitrary pieces, must never do more to a FrameReader than make it say `corrupt`.
// Input: one byte that chooses the pieces, then the stream.

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "actors/base/check.hpp"
#include "transport/frame_reader.hpp"
#include "transport/handshake.hpp"

using namespace troupe;
using namespace troupe::transport;

namespace {

// Small enough that a claimed payload can be tried to its end.
constexpr std::uint32_t kPayloadMax = 4 << 20;

// What was read must be a frame that our own encoder writes: whatever is accepted is canonical.
void check_canonical(const Frame& frame, BytesView stream) {
  if (frame.kind != FrameKind::envelope) return;
  TROUPE_CHECK(frame.envelope.payload.size() <= stream.size(), "a payload is made of bytes that arrived");
  const FrameHeaderBytes bytes = encode_header(header_of(frame.envelope, true));
  TROUPE_CHECK(parse_header(bytes).has_value(), "what was accepted can be sent on");
}

void read_stream(BytesView stream, std::size_t piece) {
  FrameReader reader(kPayloadMax);
  BytesView left = stream;
  while (!left.empty()) {
    std::size_t put = 0;
    for (const std::span<std::byte> place : reader.space()) {
      const std::size_t count = std::min({place.size(), left.size(), piece - put});
      std::ranges::copy(left.first(count), place.begin());
      left = left.subspan(count);
      put += count;
    }
    TROUPE_CHECK(put > 0, "there is always room for a byte");
    reader.commit(put);
    Frame frame;
    for (;;) {
      const Result<bool> taken = reader.next(frame);
      if (!taken) return;
      if (!*taken) break;
      check_canonical(frame, stream);
    }
    TROUPE_CHECK(reader.memory_bytes() <= FrameReader::kBufferBytes + FrameReader::kFirstReserveBytes + 4 * stream.size(),
                 "memory follows what arrived");
  }
}

void shake(BytesView bytes) {
  Membership own{.rank = Rank{1}, .size = 4, .job = {}, .secret = {}, .build = 0};
  for (Handshake handshake : {Handshake::accepting(own, {}), Handshake::connecting(own, Rank{0}, {})}) {
    BytesView left = bytes;
    while (handshake.wanted_bytes() > 0 && left.size() >= handshake.wanted_bytes()) {
      const std::size_t wanted = handshake.wanted_bytes();
      if (!handshake.feed(left.first(wanted))) break;
      left = left.subspan(wanted);
    }
    TROUPE_CHECK(!handshake.is_done(), "nobody guesses an HMAC");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  const std::size_t pieces[] = {1, 13, 72, 300, 4'096, 1 << 20};
  read_stream(bytes.subspan(1), pieces[data[0] % std::size(pieces)]);
  shake(bytes.subspan(1));
  return 0;
}
