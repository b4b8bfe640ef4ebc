#include "models/training/packing.hpp"

#include <algorithm>
#include <numeric>

#include "actors/base/check.hpp"
#include "actors/base/philox.hpp"

namespace troupe::models {
namespace {

/// Fisher and Yates; element i's partner is a draw of its own.
std::vector<std::uint32_t> shuffled(std::uint64_t count, std::uint64_t seed, std::uint64_t epoch) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  DrawKey key{.seed = seed, .purpose = Purpose::shuffle, .prompt = epoch, .sample = 0, .position = 0};
  for (std::uint64_t i = count - 1; i > 0; --i) {
    key.position = static_cast<std::uint32_t>(i);
    const auto words = draw(key);
    const auto partner = static_cast<std::uint64_t>(uniform_double(words[0], words[1]) * static_cast<double>(i + 1));
    std::swap(order[i], order[partner]);
  }
  return order;
}

/// Deals what is sorted by falling length to [0, floor(n / 2)) and the rest of `out`, and so on inside both.
void deal(std::span<const std::size_t> sorted, std::span<std::size_t> out) {
  if (sorted.size() < 2) {
    std::ranges::copy(sorted, out.begin());
    return;
  }
  const std::size_t half = sorted.size() / 2;
  std::vector<std::size_t> left, right;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const bool to_left = left.size() < half && (i % 4 == 0 || i % 4 == 3 || right.size() == sorted.size() - half);
    (to_left ? left : right).push_back(sorted[i]);
  }
  deal(left, out.first(half));
  deal(right, out.subspan(half));
}

}  // namespace

std::vector<std::size_t> balanced_order(std::span<const std::size_t> lengths) {
  std::vector<std::size_t> sorted(lengths.size()), out(lengths.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::ranges::stable_sort(sorted, [&](std::size_t a, std::size_t b) { return lengths[a] > lengths[b]; });
  deal(sorted, out);
  return out;
}

ExampleOrder::ExampleOrder(std::uint64_t count, std::uint64_t seed) : count_(count), seed_(seed) {
  TROUPE_CHECK(count > 0 && count <= (std::uint64_t{1} << 32U), "examples are counted in 32 bits");
}

std::uint64_t ExampleOrder::example(std::uint64_t draw) {
  const std::uint64_t epoch = draw / count_;
  if (order_.empty() || epoch != epoch_) {
    order_ = shuffled(count_, seed_, epoch);
    epoch_ = epoch;
  }
  return order_[draw % count_];
}

std::vector<std::uint64_t> ExampleOrder::step(std::uint64_t step, std::uint32_t batch) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t i = 0; i < batch; ++i) out.push_back(example(step * batch + i));
  return out;
}

TrainingSequence instruction(std::span<const TokenId> prompt, std::span<const TokenId> response) {
  TrainingSequence out;
  out.tokens.assign(prompt.begin(), prompt.end());
  out.tokens.insert(out.tokens.end(), response.begin(), response.end());
  out.mask.assign(out.tokens.size(), 1);
  std::fill_n(out.mask.begin(), std::min(out.mask.size(), std::max<std::size_t>(1, prompt.size())), std::uint8_t{0});
  return out;
}

std::vector<TrainingSequence> cut_stream(std::span<const TokenId> stream, std::size_t length) {
  TROUPE_CHECK(length > 1, "a sequence predicts at least one token");
  std::vector<TrainingSequence> out;
  for (std::size_t at = 0; at + 1 < stream.size(); at += length - 1) {
    out.push_back(instruction(stream.subspan(at, 1), stream.subspan(at + 1, std::min(length - 1, stream.size() - at - 1))));
  }
  return out;
}

}  // namespace troupe::models
