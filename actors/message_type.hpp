#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "actors/base/type_name.hpp"
#include "actors/base/value.hpp"
#include "actors/base/wire.hpp"

namespace troupe {

struct Envelope;
struct EnvelopeDeleter {
  void operator()(Envelope* envelope) const;
};
using EnvelopePtr = std::unique_ptr<Envelope, EnvelopeDeleter>;

/// The content's digest and those of its top-level fields, by which a replay names the field that differs.
struct ContentDigest {
  std::uint64_t whole = 0;
  std::uint64_t bytes = 0;             ///< of the content in digest mode
  std::vector<std::uint32_t> fields;   ///< low halves, in the order of serialize
};

/// What the runtime does with a message whose type it does not know at compile time. One for each type, for the process's life.
struct MessageType {
  TypeId id{};
  std::string_view name;
  void (*destroy)(Envelope*);
  void (*encode)(Bytes& out, const void* payload);
  Result<EnvelopePtr> (*decode)(BytesView bytes);
  EnvelopePtr (*clone)(const void* payload);
  ContentDigest (*digest)(const void* payload);
  Value (*to_value)(const void* payload);
};

/// Types known to this process: those that some handler takes or some ask returns. Null for others.
const MessageType* find_message_type(TypeId id);
std::vector<const MessageType*> message_types();  ///< ascending by id
void register_message_type(const MessageType& type);  ///< TROUPE_CHECK: no two names share an id

/// Digest and field digests of any value with `serialize`.
template <class T>
ContentDigest content_digest(const T& value) {
  thread_local Bytes scratch;
  thread_local std::vector<std::size_t> starts;
  scratch.clear();
  starts.clear();
  WireWriter writer(scratch, WireWriter::Mode::digest);
  writer.mark_fields(&starts);
  writer & value;
  ContentDigest digest{.whole = digest64(scratch), .bytes = scratch.size(), .fields = {}};
  digest.fields.reserve(starts.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t end = i + 1 < starts.size() ? starts[i + 1] : scratch.size();
    digest.fields.push_back(static_cast<std::uint32_t>(digest64(BytesView(scratch).subspan(starts[i], end - starts[i]))));
  }
  return digest;
}

template <class T>
const MessageType& message_type();

}  // namespace troupe
