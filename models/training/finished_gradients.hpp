#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/model.hpp"
#include "models/training/backward.hpp"

namespace troupe::models {

/// A shard's gradients by parameter, row-major, of the shard's shapes.
using Gradients = std::map<std::string, std::vector<float>>;

/// Finishes the trees of a batch of `sequences`: joins the nodes of all data-parallel members (each of which holds those of its
/// range_of the batch), folds what is left over, adds heads of q and k norms over shards and a tied matrix's two gradients. Every member gets
/// the same. data may be null. Collective over both groups. Errors: a collective's.
Result<Gradients> finish_gradients(Model& model, collectives::Communicator* data, std::uint64_t sequences, GradientTrees trees);

/// The sequences [begin, end) of a batch that a data-parallel member computes.
Range range_of(std::uint64_t sequences, const collectives::Communicator* data);

/// The global norm in double: squares by row in column segments, rows in row segments, parameters by name. Collective over the shards.
Result<double> gradient_norm(Model& model, const Gradients& gradients);

}  // namespace troupe::models
