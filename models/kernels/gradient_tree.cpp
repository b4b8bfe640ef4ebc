#include <algorithm>

#include "actors/base/check.hpp"
#include "models/kernels/gradients.hpp"
#include "models/kernels/linear.hpp"

namespace troupe::models {

namespace {

/// The rows of both, ascending; those in both are added.
void add_sparse(GradientNode& left, const GradientNode& right, std::size_t dim) {
  std::vector<std::uint32_t> rows;
  rows.reserve(left.rows.size() + right.rows.size());
  std::set_union(left.rows.begin(), left.rows.end(), right.rows.begin(), right.rows.end(), std::back_inserter(rows));
  std::vector<float> data(rows.size() * dim);
  std::size_t l = 0, r = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    float* to = &data[i * dim];
    const bool in_left = l < left.rows.size() && left.rows[l] == rows[i];
    const bool in_right = r < right.rows.size() && right.rows[r] == rows[i];
    if (in_left) std::copy_n(&left.data[l * dim], dim, to);
    if (in_left && in_right) {
      for (std::size_t d = 0; d < dim; ++d) to[d] += right.data[r * dim + d];
    } else if (in_right) {
      std::copy_n(&right.data[r * dim], dim, to);
    }
    l += in_left ? 1 : 0;
    r += in_right ? 1 : 0;
  }
  left.rows = std::move(rows);
  left.data = std::move(data);
}

/// left + right, whatever they cover; absent ones are passed through.
GradientNode sum(ThreadPool& pool, GradientNode left, GradientNode right, std::size_t dim) {
  if (!right.present) return left;
  if (!left.present) return right;
  TROUPE_CHECK(left.sparse == right.sparse, "nodes of one parameter are of one kind");
  if (left.sparse) {
    add_sparse(left, right, dim);
  } else {
    TROUPE_CHECK(left.data.size() == right.data.size(), "nodes of one parameter have one size");
    add(pool, left.data, right.data);
  }
  return left;
}

}  // namespace

GradientNode merge(ThreadPool& pool, GradientNode left, GradientNode right, std::size_t dim) {
  const std::uint32_t level = left.level + 1;
  const std::uint64_t index = left.index / 2;
  GradientNode parent = sum(pool, std::move(left), std::move(right), dim);
  parent.level = level;
  parent.index = index;
  return parent;
}

void append_nodes(ThreadPool& pool, GradientNodes& nodes, GradientNodes later, std::size_t dim) {
  for (GradientNode& node : later) {
    TROUPE_CHECK(nodes.empty() || nodes.back().end() == node.first(), "nodes are appended in the global order, without gaps");
    nodes.push_back(std::move(node));
    while (nodes.size() > 1 && nodes[nodes.size() - 2].level == nodes.back().level && nodes.back().index % 2 == 1) {
      GradientNode right = std::move(nodes.back());
      nodes.pop_back();
      nodes.back() = merge(pool, std::move(nodes.back()), std::move(right), dim);
    }
  }
}

std::vector<float> fold_nodes(ThreadPool& pool, GradientNodes nodes, std::size_t dense_size, std::size_t dim) {
  TROUPE_CHECK(nodes.empty() || nodes.front().first() == 0, "the tree is finished from sequence 0 on");
  GradientNode total;
  if (!nodes.empty()) {
    total = std::move(nodes.back());
    nodes.pop_back();
  }
  for (; !nodes.empty(); nodes.pop_back()) total = sum(pool, std::move(nodes.back()), std::move(total), dim);
  if (total.present && !total.sparse) {
    TROUPE_CHECK(total.data.size() == dense_size, "the nodes are of this parameter");
    return std::move(total.data);
  }
  std::vector<float> dense(dense_size);
  for (std::size_t i = 0; i < total.rows.size(); ++i) std::copy_n(&total.data[i * dim], dim, &dense[total.rows[i] * dim]);
  return dense;
}

}  // namespace troupe::models
