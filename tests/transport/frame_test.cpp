#include "transport/frame.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "actors/base/digest.hpp"
#include "transport/frame_reader.hpp"

namespace troupe::testing {
namespace {

using namespace transport;

// The worked example of frame.md.
WireEnvelope example() {
  WireEnvelope envelope;
  envelope.kind = EnvelopeKind::ask;
  envelope.to = ActorId{0x1122334455667788};
  envelope.sender = {ActorId{0x99AABBCCDDEEFF00}, Rank{3}};
  envelope.origin = {ActorId{0x99AABBCCDDEEFF00}, 42};
  envelope.correlation = 42;
  envelope.type = TypeId{0x0123456789ABCDEF};
  envelope.payload = {std::byte{0xDE}, std::byte{0xAD}, std::byte{0xBE}, std::byte{0xEF}};
  return envelope;
}

Bytes frame_of(const WireEnvelope& envelope, bool with_payload_crc = true) {
  const FrameHeaderBytes header = encode_header(header_of(envelope, with_payload_crc));
  Bytes bytes(header.begin(), header.end());
  bytes.insert(bytes.end(), envelope.payload.begin(), envelope.payload.end());
  return bytes;
}

Bytes bare_frame(FrameKind kind) {
  FrameHeader header;
  header.frame = kind;
  const FrameHeaderBytes bytes = encode_header(header);
  return {bytes.begin(), bytes.end()};
}

std::string hex(BytesView bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[std::to_integer<std::size_t>(byte) >> 4];
    text += kDigits[std::to_integer<std::size_t>(byte) & 15];
  }
  return text;
}

bool equal(const WireEnvelope& a, const WireEnvelope& b) {
  return a.kind == b.kind && a.to == b.to && a.sender.id == b.sender.id && a.sender.rank == b.sender.rank && a.origin == b.origin &&
         a.correlation == b.correlation && a.type == b.type && a.payload == b.payload;
}

// Puts all of `bytes` into the reader in pieces of at most `piece` bytes, and takes what becomes whole.
Result<std::vector<Frame>> read_all(FrameReader& reader, BytesView bytes, std::size_t piece) {
  std::vector<Frame> frames;
  while (!bytes.empty()) {
    std::size_t put = 0;
    for (const std::span<std::byte> place : reader.space()) {
      const std::size_t count = std::min({place.size(), bytes.size(), piece - put});
      std::ranges::copy(bytes.first(count), place.begin());
      bytes = bytes.subspan(count);
      put += count;
    }
    EXPECT_GT(put, 0U) << "there is always space for a byte";
    reader.commit(put);
    for (;;) {
      Frame frame;
      Result<bool> taken = reader.next(frame);
      if (!taken) return taken.error();
      if (!*taken) break;
      frames.push_back(std::move(frame));
    }
  }
  return frames;
}

Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

// The hex lines of frame.md's worked example.
std::string documented_hex() {
  std::ifstream file(TROUPE_SOURCE_DIR "/transport/frame.md");
  std::string digits;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("    ")) continue;
    std::istringstream words(line.substr(0, line.find("  ", 4)));
    for (std::string word; words >> word;) digits += word;
  }
  return digits;
}

TEST(Frame, HasTheGoldenBytesOfItsDocument) {
  EXPECT_EQ(hex(frame_of(example())),
            "5452504601000101040000008e77dcf1887766554433221100ffeeddccbbaa9900ffeeddccbbaa992a000000000000002a00000000000000"
            "efcdab89674523010300000022adf27cdeadbeef");
  EXPECT_EQ(documented_hex(), hex(frame_of(example())));
}

TEST(Frame, RoundTripsEveryEnvelopeKind) {
  for (int kind = 0; kind <= 7; ++kind) {
    WireEnvelope envelope = example();
    envelope.kind = static_cast<EnvelopeKind>(kind);
    FrameReader reader;
    const auto frames = read_all(reader, frame_of(envelope), 1 << 20);
    ASSERT_TRUE(frames);
    ASSERT_EQ(frames->size(), 1U);
    EXPECT_EQ((*frames)[0].kind, FrameKind::envelope);
    EXPECT_TRUE(equal((*frames)[0].envelope, envelope));
  }
}

TEST(Frame, RefusesEveryTruncatedHeader) {
  const Bytes whole = frame_of(example());
  for (std::size_t length = 0; length < kFrameHeaderBytes; ++length) {
    const auto parsed = parse_header(BytesView(whole).first(length));
    ASSERT_FALSE(parsed);
    EXPECT_EQ(parsed.error().code, ErrorCode::corrupt);
  }
}

TEST(Frame, RefusesEveryChangedByte) {
  const Bytes whole = frame_of(example());
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (unsigned flip = 1; flip < 256; ++flip) {
      Bytes changed = whole;
      changed[at] ^= static_cast<std::byte>(flip);
      FrameReader reader;
      EXPECT_FALSE(read_all(reader, changed, 1 << 20)) << "byte " << at << " changed by " << flip;
    }
  }
}

// A header with a valid CRC may still be nonsense: the sum guards against accidents, not against a peer.
TEST(Frame, RefusesNonsenseWithAValidSum) {
  const auto refused = [](auto change) {
    Bytes bytes = frame_of(example());
    change(bytes);
    const std::uint32_t sum = crc32c(BytesView(bytes).first(68));
    std::memcpy(bytes.data() + 68, &sum, sizeof(sum));
    return !parse_header(bytes);
  };
  EXPECT_FALSE(refused([](Bytes&) {}));
  EXPECT_TRUE(refused([](Bytes& bytes) { bytes[4] = std::byte{2}; })) << "version";
  EXPECT_TRUE(refused([](Bytes& bytes) { bytes[5] = std::byte{3}; })) << "frame kind";
  EXPECT_TRUE(refused([](Bytes& bytes) { bytes[5] = std::byte{1}; })) << "a heartbeat with fields";
  EXPECT_TRUE(refused([](Bytes& bytes) { bytes[6] = std::byte{8}; })) << "envelope kind";
  EXPECT_TRUE(refused([](Bytes& bytes) { bytes[7] = std::byte{2}; })) << "flags";
  EXPECT_TRUE(refused([](Bytes& bytes) { bytes[7] = std::byte{0}; })) << "a payload CRC without its flag";
  EXPECT_TRUE(refused([](Bytes& bytes) { bytes[11] = std::byte{0x81}; })) << "payload above the limit";
}

TEST(Frame, LimitsThePayload) {
  WireEnvelope envelope = example();
  for (const std::size_t size : {99U, 100U, 101U}) {
    envelope.payload.resize(size);
    EXPECT_EQ(parse_header(frame_of(envelope), 100).has_value(), size <= 100) << size;
  }
}

TEST(FrameReader, TakesFramesWhateverTheCuts) {
  WireEnvelope large = example();
  large.payload.assign(FrameReader::kLargePayloadBytes + 1, std::byte{7});
  WireEnvelope largest = example();
  largest.payload.assign(FrameReader::kBufferBytes + 77, std::byte{9});
  const Bytes stream = joined({frame_of(example()), bare_frame(FrameKind::heartbeat), frame_of(large), frame_of(largest, false),
                               frame_of(large), frame_of(example(), false), bare_frame(FrameKind::goodbye)});
  for (const std::size_t piece : {1U, 7U, 71U, 72U, 73U, 4099U, 65536U, 1U << 20}) {
    FrameReader reader;
    const auto frames = read_all(reader, stream, piece);
    ASSERT_TRUE(frames) << frames.error().detail;
    ASSERT_EQ(frames->size(), 7U) << "pieces of " << piece;
    EXPECT_TRUE(equal((*frames)[2].envelope, large) && equal((*frames)[3].envelope, largest) && equal((*frames)[5].envelope, example()));
    EXPECT_EQ((*frames)[6].kind, FrameKind::goodbye);
    EXPECT_TRUE(reader.is_between_frames());
  }
}

TEST(FrameReader, WaitsAtEveryTruncation) {
  WireEnvelope envelope = example();
  envelope.payload.assign(300, std::byte{1});
  const Bytes whole = frame_of(envelope);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    FrameReader reader;
    const auto frames = read_all(reader, BytesView(whole).first(length), 1 << 20);
    ASSERT_TRUE(frames);
    EXPECT_TRUE(frames->empty());
    EXPECT_EQ(reader.is_between_frames(), length == 0);
  }
}

TEST(FrameReader, ReadsManySmallFramesFromOneRead) {
  Bytes stream;
  for (int i = 0; i < 500; ++i) {
    const Bytes frame = frame_of(example());
    stream.insert(stream.end(), frame.begin(), frame.end());
  }
  FrameReader reader;
  EXPECT_GE(reader.space()[0].size(), stream.size());
  EXPECT_EQ(read_all(reader, stream, 1 << 20)->size(), 500U);
}

TEST(FrameReader, TakesMemoryForBytesThatCameNotForBytesThatWereClaimed) {
  FrameHeader header;
  header.payload_bytes = kPayloadBytesMax;
  const FrameHeaderBytes bytes = encode_header(header);
  FrameReader reader;
  ASSERT_TRUE(read_all(reader, bytes, 1 << 20));
  (void)reader.space();
  EXPECT_LE(reader.memory_bytes(), FrameReader::kBufferBytes + FrameReader::kFirstReserveBytes);
  const Bytes part(3 << 20);
  ASSERT_TRUE(read_all(reader, part, 1 << 20));
  EXPECT_LE(reader.memory_bytes(), FrameReader::kBufferBytes + 4 * part.size());
}

TEST(FrameReader, FindsAChangedLargePayload) {
  WireEnvelope envelope = example();
  envelope.payload.assign(1 << 20, std::byte{5});
  Bytes stream = frame_of(envelope);
  stream[700'000] ^= std::byte{1};
  FrameReader reader;
  const auto frames = read_all(reader, stream, 100'000);
  ASSERT_FALSE(frames);
  EXPECT_EQ(frames.error().code, ErrorCode::corrupt);
}

}  // namespace
}  // namespace troupe::testing
