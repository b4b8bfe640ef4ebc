#pragma once

#include <boost/system/result.hpp>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace troupe {

/// Fixed numbers: they cross ranks and stand in records. Never renumber; append.
enum class ErrorCode : std::uint16_t {
  ok = 0,
  bad_input = 1,          ///< a file, key, flag or argument is not what is allowed
  corrupt = 2,            ///< bytes that contradict their format or their digest
  io = 3,                 ///< the operating system refused (full disk, permission, missing file)
  unsupported = 4,        ///< this build does not do it
  actor_unreachable = 5,  ///< the receiver does not exist, has stopped, or its rank is gone
  actor_failed = 6,       ///< the receiver's handler threw, or answered with an error of its own
  deadline_exceeded = 7,
  mailbox_full = 8,
  cancelled = 9,
  peer_lost = 10,         ///< a link to a rank broke or was closed
  unauthorised = 11,      ///< a peer that does not hold the job's secret
  resource_short = 12,    ///< placement: no room, or memory over its limit
  collective_mismatch = 13,
  divergence = 14,        ///< a replay did not reproduce the record
  locked = 15,            ///< a live process writes this run
  internal = 16,
};

std::string_view to_string(ErrorCode code);

/// What went wrong. `detail` is one line: what, wanted, got, where, and what to do.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string detail;

  template <class Archive>
  void serialize(Archive& archive, unsigned) {
    archive& code& detail;
  }
};

/// Thrown only by Result::value() on an error that nobody looked at.
class ErrorException : public std::runtime_error {
 public:
  explicit ErrorException(Error error) : std::runtime_error(error.detail), error_(std::move(error)) {}
  const Error& error() const { return error_; }

 private:
  Error error_;
};

[[noreturn]] inline void throw_exception_from_error(const Error& error, const boost::source_location&) {
  throw ErrorException(error);
}

/// A value or an Error: `if (!result) return result.error();  use(*result);`
template <class T = void>
using Result = boost::system::result<T, Error>;

}  // namespace troupe
