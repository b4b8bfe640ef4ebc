#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "actors/base/bytes.hpp"

namespace troupe::collectives {

enum class PacketKind : std::uint8_t {
  data = 1,      ///< a part of a collective, from one member to another
  failed = 2,    ///< the group has failed; the payload is an encoded Error
  inquiry = 3,   ///< asks a rank how far its members of the group are
  progress = 4,  ///< the answer: what one member (from) is in, in the fingerprint
};

enum class Operation : std::uint8_t { none = 0, all_reduce_sum, reduce_scatter_sum, all_gather, all_gather_variable, broadcast, exchange, barrier, split };
enum class Element : std::uint8_t { byte = 0, float32 = 1, float64 = 2 };

/// What a member says it is doing; two members in the same collective must say the same.
struct Fingerprint {
  std::uint64_t sequence = 0;  ///< the group's collectives, counted from 1; exchanges are counted per pair
  std::uint64_t bytes = 0;     ///< of the whole operation, 0 where members may differ
  std::uint32_t root = 0;      ///< of a broadcast
  Operation operation = Operation::none;
  Element element = Element::byte;

  bool operator==(const Fingerprint&) const = default;
};

/// "all_reduce_sum of 4096 bytes of float32"
std::string describe(const Fingerprint& fingerprint);

/// Precedes every payload between processes, as it stands: the ranks of a job run one binary on one kind of processor.
struct PacketHeader {
  std::uint32_t magic = kMagic;
  PacketKind kind = PacketKind::data;
  std::uint8_t unused[3] = {};
  std::uint64_t group = 0;
  std::uint32_t from = 0;  ///< member
  std::uint32_t to = 0;    ///< member
  Fingerprint fingerprint{};
  std::uint64_t payload_bytes = 0;

  static constexpr std::uint32_t kMagic = 0x4c435254;  // "TRCL"
};

/// A header and its payload in one block, so that a wire sends it as one message.
class Packet {
 public:
  Packet() = default;
  explicit Packet(const PacketHeader& header)
      : size_(sizeof header + header.payload_bytes), block_(std::make_unique_for_overwrite<std::byte[]>(size_)) {
    std::memcpy(block_.get(), &header, sizeof header);
  }

  /// An empty one, to be filled by a wire. Precondition: block_bytes >= sizeof(PacketHeader).
  static Packet of_size(std::size_t block_bytes) {
    Packet packet;
    packet.size_ = block_bytes;
    packet.block_ = std::make_unique_for_overwrite<std::byte[]>(block_bytes);
    return packet;
  }

  PacketHeader header() const {
    PacketHeader header;
    std::memcpy(&header, block_.get(), sizeof header);
    return header;
  }
  std::span<std::byte> payload() { return {block_.get() + sizeof(PacketHeader), size_ - sizeof(PacketHeader)}; }
  BytesView payload() const { return {block_.get() + sizeof(PacketHeader), size_ - sizeof(PacketHeader)}; }
  std::span<std::byte> block() { return {block_.get(), size_}; }

 private:
  std::size_t size_ = 0;
  std::unique_ptr<std::byte[]> block_;
};

}  // namespace troupe::collectives
