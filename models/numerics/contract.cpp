#include "models/numerics/contract.hpp"

namespace troupe::models::numerics {

namespace {

// Each line fixes one order of operations; README.md explains them.
constexpr std::string_view kRules =
    "linear: 8 segments [sK/8], fma chain from +0 ascending k, tree ((0+1)+(2+3))+((4+5)+(6+7))\n"
    "linears with one input: per segment in the order q k v or gate up, one chain, one tree\n"
    "vector sums: 16 interleaved partials in each of 8 segments, halves added (i + i+8, +4, +2, +1), tree of 8\n"
    "rms_norm: 1/sqrt(sum/n + eps), (x r) w\n"
    "rope: fma(x1, cos, -(x2 sin)), fma(x2, cos, x1 sin)\n"
    "attention: blocks of 64 absolute keys, (max, sum, weighted values) combined ascending, out / sum\n"
    "log-sum-exp: (max, sum) of each of 8 segments, tree, absent segments passed through\n"
    "weight gradients: chain over 128 absolute positions, tree of blocks, tree of sequences, absent passed through\n"
    "attention gradients: dq one chain over keys, dk dv one chain over queries, heads of a group in the tree\n"
    "gradient squares: double, 16 partials in each of 8 column segments, tree; rows in 8 segments, tree\n"
    "adamw: double per element, decay first\n"
    "exp log: polynomials of numerics/float_math.hpp; double: numerics/double_math.hpp\n";

}  // namespace

std::uint64_t contract_hash() {
  std::uint64_t hash = 0xcbf29ce484222325ULL + kContractVersion;
  for (const char c : kRules) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

std::string contract_label() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (int shift = 60; shift >= 0; shift -= 4) hex += kDigits[(contract_hash() >> shift) & 15];
  return std::string(kContractName) + " " + std::to_string(kContractVersion) + " (" + hex + ")";
}

}  // namespace troupe::models::numerics
