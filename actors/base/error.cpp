#include "actors/base/error.hpp"

namespace troupe {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::ok: return "ok";
    case ErrorCode::bad_input: return "bad input";
    case ErrorCode::corrupt: return "corrupt";
    case ErrorCode::io: return "input/output";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::actor_unreachable: return "actor unreachable";
    case ErrorCode::actor_failed: return "actor failed";
    case ErrorCode::deadline_exceeded: return "deadline exceeded";
    case ErrorCode::mailbox_full: return "mailbox full";
    case ErrorCode::cancelled: return "cancelled";
    case ErrorCode::peer_lost: return "peer lost";
    case ErrorCode::unauthorised: return "unauthorised";
    case ErrorCode::resource_short: return "resource short";
    case ErrorCode::collective_mismatch: return "collective mismatch";
    case ErrorCode::divergence: return "divergence";
    case ErrorCode::locked: return "locked";
    case ErrorCode::internal: return "internal";
  }
  return "unknown";
}

}  // namespace troupe
