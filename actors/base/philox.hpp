#pragma once

#include <array>
#include <cstdint>

namespace troupe {

/// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11): four 32-bit words that
/// depend on counter and key alone, so a draw depends on neither rank, thread nor batch.
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

/// What a random number is for. Part of the key, so two uses never share a stream. Append only.
enum class Purpose : std::uint32_t { initialise = 1, sample = 2, shuffle = 3, data = 4, jitter = 5 };

/// Names one draw: no two draws of a run share all five.
struct DrawKey {
  std::uint64_t seed = 0;
  Purpose purpose = Purpose::sample;
  std::uint64_t prompt = 0;     ///< the global draw counter: step x prompts + index
  std::uint32_t sample = 0;     ///< index within the prompt's group
  std::uint32_t position = 0;   ///< position in the sequence, or the element's index
};

/// Four words for one draw; key = mix of seed and purpose, counter = (prompt, sample, position).
std::array<std::uint32_t, 4> draw(const DrawKey& key);

/// Uniform in [0, 1) with 24 bits, from one word.
float uniform_float(std::uint32_t word);
/// Uniform in [0, 1) with 53 bits, from two words.
double uniform_double(std::uint32_t high, std::uint32_t low);
/// Uniform in [0, bound) from a 32-bit word by the multiply-shift; bias at most bound / 2^32. Precondition: bound > 0.
std::uint32_t uniform_below(std::uint32_t word, std::uint32_t bound);

}  // namespace troupe
