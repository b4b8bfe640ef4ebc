#pragma once

#include <optional>
#include <utility>

#include "actors/base/bytes.hpp"
#include "actors/base/error.hpp"
#include "actors/base/wire.hpp"

namespace troupe::jobs::debug {

/// A file descriptor that is closed with it.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_ = -1;
};

/// One end of a stream between two processes of one debugger: whole messages, each with a descriptor if wanted. Errors: peer_lost when the
/// other end is gone, io.
class Channel {
 public:
  Channel() = default;
  explicit Channel(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  static Result<std::pair<Channel, Channel>> pair();

  Result<void> send(BytesView message, const Descriptor* attached = nullptr);
  /// Waits. An attached descriptor lands in `attached`; when that is null it is closed.
  Result<Bytes> receive(Descriptor* attached = nullptr);

  template <class T>
  Result<void> send_value(const T& value, const Descriptor* attached = nullptr) {
    Bytes bytes;
    encode(bytes, value);
    return send(bytes, attached);
  }
  template <class T>
  Result<T> receive_value(Descriptor* attached = nullptr) {
    Result<Bytes> bytes = receive(attached);
    if (!bytes) return bytes.error();
    return decode<T>(*bytes);
  }
  const Descriptor& descriptor() const { return descriptor_; }
  Descriptor release() { return std::move(descriptor_); }

 private:
  Descriptor descriptor_;
};

}  // namespace troupe::jobs::debug
