#pragma once

#include <cstddef>
#include <utility>

#include "actors/actor_ref.hpp"
#include "actors/envelope_memory.hpp"
#include "actors/base/fields.hpp"
#include "actors/message_type.hpp"

namespace troupe {

/// Fixed numbers: they stand in frames and records.
enum class EnvelopeKind : std::uint8_t {
  tell = 0,
  ask = 1,
  reply = 2,
  error_reply = 3,  ///< payload: Error
  timer = 4,        ///< an actor's own message after a delay
  deadline = 5,     ///< an ask's deadline passed; payload: Error
  down = 6,         ///< a monitored actor stopped; payload: Down
  system = 7,       ///< supervision and spawning; not a delivery, not recorded
};

/// Names a message for good: the sender's count of what it sent. The same in a replay, on any number of ranks.
struct Origin {
  ActorId sender{};
  std::uint64_t sequence = 0;
  auto operator<=>(const Origin&) const = default;
};

/// A message on its way. The payload lies behind the header in one allocation, so a local send allocates once and copies nothing.
struct Envelope {
  Envelope* next = nullptr;  ///< of a mailbox's list
  const MessageType* type = nullptr;
  Origin origin;
  ActorRef sender;          ///< to reply to
  ActorId to{};
  std::uint64_t correlation = 0;  ///< ask: its origin's sequence; reply, error_reply, deadline: that of the ask
  EnvelopeKind kind = EnvelopeKind::tell;

  void* payload();
  const void* payload() const { return const_cast<Envelope*>(this)->payload(); }
  template <class T>
  T& as() {
    return *static_cast<T*>(payload());
  }
};

namespace envelope_detail {
template <class T>
struct Holder : Envelope {
  alignas(std::max_align_t) T value;
  template <class... Args>
  explicit Holder(Args&&... args) : value{std::forward<Args>(args)...} {}
  static void* operator new(std::size_t bytes) { return envelope_memory::take(bytes); }
  static void operator delete(void* block, std::size_t bytes) { envelope_memory::give(block, bytes); }
};
struct Anything : Envelope {
  alignas(std::max_align_t) std::byte value[1];
};

template <class T>
struct Operations {
  static void destroy(Envelope* envelope) { delete static_cast<Holder<T>*>(envelope); }
  static void encode(Bytes& out, const void* payload) { troupe::encode(out, *static_cast<const T*>(payload)); }
  static Result<EnvelopePtr> decode(BytesView bytes);
  static EnvelopePtr clone(const void* payload);
  static ContentDigest digest(const void* payload) { return content_digest(*static_cast<const T*>(payload)); }
  static Value to_value(const void* payload) { return troupe::to_value(*static_cast<const T*>(payload)); }
};
}  // namespace envelope_detail

/// Every use in a handler, an ask or a test registers the type once, before main.
template <class T>
struct MessageTypeOf {
  static const MessageType& get() {
    static const MessageType type{
        .id = TypeId{digest64(type_name<T>())},
        .name = type_name<T>(),
        .destroy = &envelope_detail::Operations<T>::destroy,
        .encode = &envelope_detail::Operations<T>::encode,
        .decode = &envelope_detail::Operations<T>::decode,
        .clone = &envelope_detail::Operations<T>::clone,
        .digest = &envelope_detail::Operations<T>::digest,
        .to_value = &envelope_detail::Operations<T>::to_value,
    };
    return type;
  }
  static const bool registered;
};
template <class T>
const bool MessageTypeOf<T>::registered = (register_message_type(MessageTypeOf<T>::get()), true);

template <class T>
const MessageType& message_type() {
  (void)&MessageTypeOf<T>::registered;
  return MessageTypeOf<T>::get();
}

template <class T, class... Args>
EnvelopePtr make_envelope(Args&&... args) {
  EnvelopePtr envelope(new envelope_detail::Holder<T>(std::forward<Args>(args)...));
  envelope->type = &message_type<T>();
  return envelope;
}

template <class T>
Result<EnvelopePtr> envelope_detail::Operations<T>::decode(BytesView bytes) {
  EnvelopePtr envelope = make_envelope<T>();
  if (Result<void> read = decode_into(bytes, envelope->as<T>()); !read) return std::move(read).error();
  return envelope;
}
template <class T>
EnvelopePtr envelope_detail::Operations<T>::clone(const void* payload) {
  return make_envelope<T>(*static_cast<const T*>(payload));
}

inline void* Envelope::payload() {
  return static_cast<envelope_detail::Anything*>(this)->value;
}

inline void EnvelopeDeleter::operator()(Envelope* envelope) const {
  envelope->type->destroy(envelope);
}

/// A message that stopped actors leave to those that monitor them.
struct Down {
  ActorRef actor;
  Error reason;  ///< ok: it stopped by itself
  TROUPE_FIELDS(actor, reason)
};

/// The reply of a handler that returns nothing.
struct Done {
  TROUPE_NO_FIELDS()
};

}  // namespace troupe
