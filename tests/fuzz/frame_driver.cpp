// frame_fuzz [SECONDS [SEED]]: feeds the fuzz target without libFuzzer: random bytes, and valid streams with some bytes changed, cut out,
// doubled, or (half of them) with their header sums mended, so that the checks behind the sums are reached.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "actors/base/digest.hpp"
#include "transport/frame.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using namespace troupe;
using namespace troupe::transport;

class Inputs {
 public:
  explicit Inputs(std::uint64_t seed) : random_(seed) {}

  std::vector<std::uint8_t> next() {
    std::vector<std::uint8_t> bytes{static_cast<std::uint8_t>(below(256))};
    if (below(8) == 0) {
      for (std::size_t count = below(400); count > 0; --count) bytes.push_back(static_cast<std::uint8_t>(below(256)));
      return bytes;
    }
    for (std::size_t frames = 1 + below(6); frames > 0; --frames) append_frame(bytes);
    for (std::size_t changes = below(4); changes > 0; --changes) change(bytes);
    return bytes;
  }

 private:
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }

  void append_frame(std::vector<std::uint8_t>& bytes) {
    WireEnvelope envelope;
    envelope.kind = static_cast<EnvelopeKind>(below(8));
    envelope.to = ActorId{random_()};
    envelope.origin = {ActorId{random_()}, random_()};
    const std::size_t sizes[] = {0, 1, below(300), 16'384, 16'385, below(40'000), 140'000};
    envelope.payload.resize(sizes[below(std::size(sizes))]);
    FrameHeader header = header_of(envelope, below(2) == 0);
    if (below(10) == 0) header.payload_bytes = static_cast<std::uint32_t>(random_());
    FrameHeaderBytes encoded = encode_header(header);
    if (below(6) == 0) {
      encoded[below(68)] = static_cast<std::byte>(below(256));
      const std::uint32_t sum = crc32c(BytesView(encoded).first(68));
      std::memcpy(encoded.data() + 68, &sum, sizeof(sum));
    }
    const auto* first = reinterpret_cast<const std::uint8_t*>(encoded.data());
    bytes.insert(bytes.end(), first, first + encoded.size());
    bytes.resize(bytes.size() + envelope.payload.size());
  }

  void change(std::vector<std::uint8_t>& bytes) {
    const std::size_t at = below(bytes.size());
    const auto place = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    switch (below(4)) {
      case 0:
        *place = static_cast<std::uint8_t>(below(256));
        break;
      case 1:
        bytes.resize(at + 1);
        break;
      case 2:
        bytes.erase(place, place + static_cast<std::ptrdiff_t>(std::min(bytes.size() - at - (at == 0 ? 1 : 0), below(100))));
        break;
      default: {
        const std::vector<std::uint8_t> copy(place, place + static_cast<std::ptrdiff_t>(std::min(bytes.size() - at, below(200))));
        bytes.insert(place, copy.begin(), copy.end());
      }
    }
  }

  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::stod(argv[1]) : 3;
  Inputs inputs(argc > 2 ? std::stoull(argv[2]) : 1);
  const auto start = std::chrono::steady_clock::now();
  std::size_t tried = 0;
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds) {
    const std::vector<std::uint8_t> input = inputs.next();
    LLVMFuzzerTestOneInput(input.data(), input.size());
    ++tried;
  }
  std::printf("%zu inputs\n", tried);
  return tried > 100 ? 0 : 1;
}
