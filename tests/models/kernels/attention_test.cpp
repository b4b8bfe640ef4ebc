#include "models/kernels/attention.hpp"

#include "models/kernels/comparing.hpp"
#include "models/kernels/naive_kernels.hpp"

namespace troupe::models {
namespace {

using namespace testing;

/// Sequences of `lengths`, one after another in the rows, with caches of their own.
struct Sequences {
  AttentionShape shape;
  std::vector<std::size_t> lengths;
  std::size_t rows = 0;
  std::vector<float> q, dout;
  std::vector<std::vector<float>> keys, values;
  std::vector<AttentionSpan> spans;

  Sequences(AttentionShape attention_shape, std::vector<std::size_t> all) : shape(attention_shape), lengths(std::move(all)) {
    for (const std::size_t length : lengths) rows += length;
    q = numbers(rows * shape.heads * shape.head_dim, 1, 2.0F);
    dout = numbers(q.size(), 2);
    const std::size_t width = shape.kv_heads * shape.head_dim;
    const auto k = numbers(rows * width, 3, 2.0F), v = numbers(rows * width, 4);
    std::size_t row = 0;
    for (const std::size_t length : lengths) {
      // Blocks start full of what no result may show.
      keys.emplace_back(key_value_floats(shape, length), NAN);
      values.emplace_back(key_value_floats(shape, length), NAN);
      store_key_values(shape, keys.back().data(), values.back().data(), std::span(k).subspan(row * width, length * width),
                       std::span(v).subspan(row * width, length * width), 0, length);
      spans.push_back({row, 0, length, {keys.back().data(), values.back().data()}});
      row += length;
    }
  }
};

struct Forward {
  std::vector<float> out;
  std::vector<SoftmaxState> states;
};

template <class Kernel>
Forward forward(ThreadPool& pool, const Sequences& s, std::span<const AttentionSpan> spans, Kernel kernel) {
  Forward result{std::vector<float>(s.q.size()), std::vector<SoftmaxState>(s.rows * s.shape.heads)};
  kernel(pool, s.shape, spans, result.out, s.q, result.states);
  return result;
}

constexpr auto plain_attention = [](auto&&... args) { naive::attention(args...); };
constexpr auto vector_attention = [](auto&&... args) { attention(args...); };

std::vector<Sequences> cases() {
  std::vector<Sequences> all;
  for (const std::size_t dim : {1U, 8U, 31U, 64U, 80U}) {
    for (const std::size_t group : {1U, 2U, 3U}) {
      for (const std::size_t window : {0U, 1U, 20U, 70U}) {
        all.emplace_back(AttentionShape{2 * group, 2, dim, 0.3F, window}, std::vector<std::size_t>{1, 5, 33, 150});
      }
    }
  }
  return all;
}

TEST(Attention, EqualsThePlainChainsOverOddShapes) {
  ThreadPool one;
  for (const Sequences& s : cases()) {
    const Forward want = forward(one, s, s.spans, plain_attention);
    on_all_targets([&](ThreadPool& pool) {
      const Forward got = forward(pool, s, s.spans, vector_attention);
      EXPECT_TRUE(equal_bits(got.out, want.out)) << "dim " << s.shape.head_dim << ", group " << s.shape.group() << ", window " << s.shape.window;
      EXPECT_TRUE(equal_bits(got.states, want.states));
    });
  }
}

TEST(Attention, ChunksOfAnyLengthGiveTheBitsOfTheWhole) {
  ThreadPool one;
  for (const std::size_t window : {0U, 70U}) {
    const Sequences s({4, 2, 24, 0.2F, window}, {200});
    const Forward want = forward(one, s, s.spans, plain_attention);
    on_all_targets([&](ThreadPool& pool) {
      for (const std::size_t chunk : {1U, 7U, 63U, 64U, 65U, 199U}) {
        std::vector<AttentionSpan> spans;
        for (std::size_t at = 0; at < 200; at += chunk) spans.push_back({at, at, std::min<std::size_t>(chunk, 200 - at), s.spans[0].cache});
        EXPECT_TRUE(equal_bits(forward(pool, s, spans, vector_attention).out, want.out)) << chunk;
      }
    });
  }
}

TEST(Attention, BackwardEqualsThePlainChainsOverOddShapes) {
  ThreadPool one;
  for (const Sequences& s : cases()) {
    const Forward f = forward(one, s, s.spans, plain_attention);
    const std::size_t kv = s.rows * s.shape.kv_heads * s.shape.head_dim;
    std::vector<float> dq(s.q.size()), dk(kv), dv(kv);
    naive::attention_backward(one, s.shape, s.spans, dq, dk, dv, s.dout, f.out, s.q, f.states);
    on_all_targets([&](ThreadPool& pool) {
      std::vector<float> q(s.q.size(), NAN), k(kv, NAN), v(kv, NAN);
      attention_backward(pool, s.shape, s.spans, q, k, v, s.dout, f.out, s.q, f.states);
      EXPECT_TRUE(equal_bits(q, dq)) << "dim " << s.shape.head_dim << ", group " << s.shape.group() << ", window " << s.shape.window;
      EXPECT_TRUE(equal_bits(k, dk));
      EXPECT_TRUE(equal_bits(v, dv));
    });
  }
}

}  // namespace
}  // namespace troupe::models
