#include "transport/collectives/packet.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace troupe::collectives {

std::string describe(const Fingerprint& fingerprint) {
  constexpr std::array<std::string_view, 9> operations = {"nothing",   "all_reduce_sum", "reduce_scatter_sum", "all_gather", "all_gather_variable",
                                                          "broadcast", "exchange",       "barrier",            "split"};
  constexpr std::array<std::string_view, 3> elements = {"bytes", "bytes of float32", "bytes of float64"};
  const auto operation = static_cast<std::size_t>(fingerprint.operation);
  std::string text(operation < operations.size() ? operations[operation] : "an unknown operation");
  if (fingerprint.bytes > 0) {
    const auto element = static_cast<std::size_t>(fingerprint.element);
    text += fmt::format(" of {} {}", fingerprint.bytes, element < elements.size() ? elements[element] : "bytes");
  }
  if (fingerprint.operation == Operation::broadcast) text += fmt::format(" from member {}", fingerprint.root);
  return text;
}

}  // namespace troupe::collectives
