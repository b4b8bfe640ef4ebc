#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe::models::numerics {

/// The rules that fix every bit of every operation (README.md, "The contract"). A change of any bit is a new version:
/// records and checkpoints carry name and hash, and a replay across versions is refused by name.
inline constexpr std::string_view kContractName = "troupe-numerics";
inline constexpr std::uint32_t kContractVersion = 1;

/// FNV-1a of the rules' text and version, so that two builds agree on the rules exactly when the hashes are equal.
std::uint64_t contract_hash();

/// "troupe-numerics 1 (0123456789abcdef)"
std::string contract_label();

inline constexpr std::size_t kSegments = 8;          ///< cuts of every dimension that tensor parallelism may split
inline constexpr std::size_t kPartials = 16;         ///< interleaved partial sums of a vector reduction
inline constexpr std::size_t kAttentionBlock = 64;   ///< absolute positions of keys
inline constexpr std::size_t kGradientBlock = 128;   ///< absolute positions of a leaf of a weight gradient

}  // namespace troupe::models::numerics
