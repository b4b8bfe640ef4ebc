#pragma once

// An actor is a class with handlers:
//
//   struct Add { using Reply = int; int amount = 0; TROUPE_FIELDS(amount) };
//   class Counter {
//    public:
//     int add(const Add& message) { return total_ += message.amount; }
//     static void handlers(troupe::Handlers<Counter>& on) { on.message<&Counter::add>(); }
//     TROUPE_FIELDS(total_)
//    private:
//     int total_ = 0;
//   };

#include <exception>
#include <tuple>
#include <type_traits>

#include "actors/actor_class.hpp"
#include "actors/cell.hpp"
#include "actors/context.hpp"
#include "actors/task.hpp"

namespace troupe {

namespace actor_detail {

template <class R>
struct Unwrap {  // what a handler's return type replies
  using Type = R;
  static constexpr bool is_task = false;
};
template <>
struct Unwrap<void> {
  using Type = Done;
  static constexpr bool is_task = false;
};
template <class R>
  requires requires { typename R::error_type; typename R::value_type; }
struct Unwrap<R> {
  using Type = std::conditional_t<std::is_void_v<typename R::value_type>, Done, typename R::value_type>;
  static constexpr bool is_task = false;
};
template <class R>
struct Unwrap<Task<R>> {
  using Type = typename Unwrap<R>::Type;
  using Inner = R;
  static constexpr bool is_task = true;
};

template <class Method>
struct Signature;
template <class A, class R, class M>
struct Signature<R (A::*)(M)> {
  using Message = std::remove_cvref_t<M>;
  using Return = R;
  static constexpr bool takes_context = false;
};
template <class A, class R, class M>
struct Signature<R (A::*)(Context&, M)> {
  using Message = std::remove_cvref_t<M>;
  using Return = R;
  static constexpr bool takes_context = true;
};

Error error_of(const std::exception_ptr& failure);

template <auto Method, class A>
decltype(auto) call(A& actor, Cell& cell, Envelope& envelope) {
  using S = Signature<decltype(Method)>;
  auto& message = envelope.as<typename S::Message>();
  if constexpr (S::takes_context) {
    return (actor.*Method)(cell.context(), message);
  } else {
    return (actor.*Method)(message);
  }
}

/// Sends what a handler returned, when it was asked.
template <class R>
void answer(Cell& cell, const Envelope& envelope, R&& result) {
  if (envelope.kind != EnvelopeKind::ask) return;
  using Plain = std::remove_cvref_t<R>;
  if constexpr (requires { typename Plain::error_type; }) {
    if (!result) return cell.reply_error(envelope, result.error());
    if constexpr (std::is_void_v<typename Plain::value_type>) {
      cell.reply(envelope, make_envelope<Done>());
    } else {
      cell.reply(envelope, make_envelope<typename Plain::value_type>(std::move(*result)));
    }
  } else {
    cell.reply(envelope, make_envelope<Plain>(std::forward<R>(result)));
  }
}

template <auto Method, class A>
task_detail::Root run_coroutine(A& actor, Cell& cell, Envelope& envelope) {
  using Inner = typename Unwrap<typename Signature<decltype(Method)>::Return>::Inner;
  std::exception_ptr failure;
  try {
    if constexpr (std::is_void_v<Inner>) {
      co_await call<Method>(actor, cell, envelope);
      answer(cell, envelope, Done{});
    } else {
      Inner result = co_await call<Method>(actor, cell, envelope);
      answer(cell, envelope, std::move(result));
    }
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) cell.handler_failed(envelope, error_of(failure));
}

template <auto Method, class A>
void start(void* object, Cell& cell, Envelope& envelope) {
  using Return = typename Signature<decltype(Method)>::Return;
  A& actor = *static_cast<A*>(object);
  if constexpr (Unwrap<Return>::is_task) {
    cell.begin(run_coroutine<Method, A>(actor, cell, envelope));
  } else {
    try {
      if constexpr (std::is_void_v<Return>) {
        call<Method>(actor, cell, envelope);
        answer(cell, envelope, Done{});
      } else {
        answer(cell, envelope, call<Method>(actor, cell, envelope));
      }
    } catch (...) {
      cell.handler_failed(envelope, error_of(std::current_exception()));
    }
  }
}

template <class A>
concept HasState = requires(A a, WireWriter w) { a.serialize(w, 0U); };

}  // namespace actor_detail

/// Collects an actor class's handlers.
template <class A>
class Handlers {
 public:
  /// Method: R (M) or R (Context&, M), R being void, a reply, Result of one, or Task of any of these. A coroutine may take the message by
  /// reference: it lives until the handler ends.
  template <auto Method>
  Handlers& message() {
    using S = actor_detail::Signature<decltype(Method)>;
    using Reply = typename actor_detail::Unwrap<typename S::Return>::Type;
    static_assert(std::same_as<Reply, reply_of<typename S::Message>>, "the handler must return what the message's Reply names");
    entries_.push_back({&message_type<typename S::Message>(), &message_type<Reply>(), &actor_detail::start<Method, A>});
    return *this;
  }

 private:
  template <class B, class... Args>
  friend struct ActorClassOf;
  std::vector<HandlerEntry> entries_;
};

/// Registers a class, with the types of its constructor's arguments, before main.
template <class A, class... Args>
struct ActorClassOf {
  static const ActorClass& get() {
    static const ActorClass actor_class = make();
    return actor_class;
  }
  static const bool registered;

 private:
  static ActorClass make() {
    Handlers<A> handlers;
    A::handlers(handlers);
    std::sort(handlers.entries_.begin(), handlers.entries_.end(), [](const HandlerEntry& a, const HandlerEntry& b) { return a.type->id < b.type->id; });
    std::string key(type_name<A>());
    ((key += ',', key += type_name<Args>()), ...);
    ActorClass result{.id = TypeId{digest64(key)},
                      .name = type_name<A>(),
                      .create = []([[maybe_unused]] BytesView bytes) -> Result<void*> {
                        if constexpr (sizeof...(Args) == 0) {
                          return new A();
                        } else {
                          std::tuple<Args...> arguments;
                          if (Result<void> read = decode_into(bytes, arguments); !read) return read.error();
                          return std::apply([](auto&... each) -> void* { return new A(std::move(each)...); }, arguments);
                        }
                      },
                      .destroy = [](void* actor) { delete static_cast<A*>(actor); },
                      .handlers = std::move(handlers.entries_)};
    if constexpr (actor_detail::HasState<A>) {
      result.digest = [](const void* actor) { return content_digest(*static_cast<const A*>(actor)); };
      result.to_value = [](const void* actor) { return troupe::to_value(*static_cast<const A*>(actor)); };
      result.restore = [](void* actor, const Value& state) { return from_value(state, *static_cast<A*>(actor)); };
    }
    return result;
  }
};
template <class A, class... Args>
const bool ActorClassOf<A, Args...>::registered = (register_actor_class(ActorClassOf<A, Args...>::get()), true);

template <class A, class... Args>
const ActorClass& actor_class() {
  (void)&ActorClassOf<A, Args...>::registered;
  return ActorClassOf<A, Args...>::get();
}

template <class... Args>
Bytes encode_arguments(const Args&... args) {
  Bytes bytes;
  if constexpr (sizeof...(Args) > 0) encode(bytes, std::tuple<Args...>(args...));
  return bytes;
}

template <class A, class... Args>
Result<ActorRef> Context::spawn(std::string name, const SpawnOptions& options, const Args&... args) {
  return spawn_class(std::move(name), actor_class<A, std::decay_t<Args>...>(), encode_arguments<std::decay_t<Args>...>(args...), options);
}
template <class A, class... Args>
Ask<ActorRef> Context::spawn_on(Rank rank, std::string name, const SpawnOptions& options, const Args&... args) {
  return Ask<ActorRef>(spawn_class_on(rank, std::move(name), actor_class<A, std::decay_t<Args>...>(), encode_arguments<std::decay_t<Args>...>(args...), options));
}
template <class A, class... Args>
Ask<ActorRef> Context::spawn_placed(std::string name, const SpawnOptions& options, const Args&... args) {
  const ActorClass& placed = actor_class<A, std::decay_t<Args>...>();
  const Rank rank = place(name, placed);
  return Ask<ActorRef>(spawn_class_on(rank, std::move(name), placed, encode_arguments<std::decay_t<Args>...>(args...), options));
}

}  // namespace troupe
