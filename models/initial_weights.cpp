#include <cmath>
#include <numbers>

#include "actors/base/digest.hpp"
#include "actors/base/philox.hpp"
#include "models/numerics/double_math.hpp"
#include "models/parameters.hpp"

namespace troupe::models {
namespace {

/// Pairs of normal numbers by Box and Muller, each pair a draw of its own.
void fill_normal(Tensor& tensor, const std::string& name, std::uint64_t seed, double deviation) {
  DrawKey key{.seed = seed, .purpose = Purpose::initialise, .prompt = digest64(name), .sample = 0, .position = 0};
  for (std::size_t i = 0; i < tensor.data.size(); i += 2) {
    const std::size_t pair = i / 2;
    key.sample = static_cast<std::uint32_t>(pair >> 32U);
    key.position = static_cast<std::uint32_t>(pair);
    const auto words = draw(key);
    const double radius = deviation * std::sqrt(-2.0 * numerics::log(1.0 - uniform_double(words[0], words[1])));
    const double angle = 2.0 * std::numbers::pi * uniform_double(words[2], words[3]);
    tensor.data[i] = static_cast<float>(radius * numerics::cos(angle));
    if (i + 1 < tensor.data.size()) tensor.data[i + 1] = static_cast<float>(radius * numerics::sin(angle));
  }
}

}  // namespace

Weights initial_weights(const ModelConfig& config, std::uint64_t seed) {
  Weights weights;
  for (const Parameter& parameter : parameters(config)) {
    Tensor tensor = Tensor::zeros(parameter.shape);
    const bool norm = parameter.name.ends_with("norm.weight");
    if (norm) tensor.data.assign(tensor.data.size(), 1.0F);
    if (!norm && parameter.shape.size() == 2) fill_normal(tensor, parameter.name, seed, config.initializer_range);
    weights.emplace(parameter.name, std::move(tensor));
  }
  return weights;
}

}  // namespace troupe::models
