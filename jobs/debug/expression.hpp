#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "actors/base/error.hpp"
#include "actors/base/value.hpp"

namespace troupe::jobs::debug {

/// What an expression's names mean. A null pointer: there is none here, and an expression that names it is an error that says so.
struct Scope {
  std::uint64_t step = 0, n = 0, rank = 0;
  std::string actor, type, sender;
  const Value* message = nullptr;
  const Value* state = nullptr;
  const Value* old_message = nullptr;  ///< inside old(…)
  const Value* old_state = nullptr;
};

/// An expression over a delivery and its actor: C's operators and literals (integers of 64 bits, doubles, strings in double quotes), the names
/// step, n, actor, rank, type, sender, message.FIELD, state.FIELD, `[i]`, `["name"]`, slices `[a:b]` of arrays and lists, and the functions
/// len, min, max, mean, norm, is_nan, any, all, digest, old(x): x before this delivery.
class Expression {
 public:
  /// Errors: bad_input with the text, and a caret below the place.
  static Result<Expression> parse(std::string_view text);
  ~Expression();
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;

  /// Errors: bad_input for a field that there is not (naming those that there are), a type that an operator does not take, an index out of
  /// range, a division by zero.
  Result<Value> evaluate(const Scope& scope) const;
  /// The same as a condition: a number that is not zero. Errors also for a string, a list, a record.
  Result<bool> is_true(const Scope& scope) const;

  bool uses_state() const;
  bool uses_message() const;
  bool uses_old() const;
  /// `state.a.b[3] = EXPR`
  bool is_assignment() const;
  /// Does an assignment to `state` (a copy of the scope's). Numbers take the type of the field. Errors as of evaluate.
  Result<void> assign(const Scope& scope, Value& state) const;

 private:
  struct Node;
  explicit Expression(std::unique_ptr<Node> root);
  std::unique_ptr<Node> root_;
};

}  // namespace troupe::jobs::debug
