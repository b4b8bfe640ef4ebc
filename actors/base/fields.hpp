#pragma once

#include <boost/serialization/nvp.hpp>

/// Writes a struct's `serialize` from the names of its fields: `struct Ping { int round = 0; TROUPE_FIELDS(round) };`
/// The names are what a record, a checkpoint, the debugger and a divergence report show. TROUPE_NO_FIELDS() for none.
#define TROUPE_FIELDS(...)                            \
  template <class Archive>                            \
  void serialize(Archive& archive, unsigned) {        \
    TROUPE_FIELDS_EACH(__VA_ARGS__)                   \
  }

#define TROUPE_NO_FIELDS()               \
  template <class Archive>               \
  void serialize(Archive&, unsigned) {}

// A list of any length, by rescanning: each TROUPE_FIELDS_EXPAND evaluates the deferred macro once more.
#define TROUPE_FIELDS_PARENS ()
#define TROUPE_FIELDS_EXPAND(...) TROUPE_FIELDS_EXPAND3(TROUPE_FIELDS_EXPAND3(TROUPE_FIELDS_EXPAND3(__VA_ARGS__)))
#define TROUPE_FIELDS_EXPAND3(...) TROUPE_FIELDS_EXPAND2(TROUPE_FIELDS_EXPAND2(TROUPE_FIELDS_EXPAND2(__VA_ARGS__)))
#define TROUPE_FIELDS_EXPAND2(...) TROUPE_FIELDS_EXPAND1(TROUPE_FIELDS_EXPAND1(TROUPE_FIELDS_EXPAND1(__VA_ARGS__)))
#define TROUPE_FIELDS_EXPAND1(...) __VA_ARGS__
#define TROUPE_FIELDS_EACH(...) __VA_OPT__(TROUPE_FIELDS_EXPAND(TROUPE_FIELDS_ONE(__VA_ARGS__)))
#define TROUPE_FIELDS_ONE(field, ...)               \
  archive& ::boost::serialization::make_nvp(#field, field); \
  __VA_OPT__(TROUPE_FIELDS_AGAIN TROUPE_FIELDS_PARENS(__VA_ARGS__))
#define TROUPE_FIELDS_AGAIN() TROUPE_FIELDS_ONE
