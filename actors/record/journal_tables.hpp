#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "actors/base/bytes.hpp"
#include "actors/base/fields.hpp"

// What a journal says, as columns: the form in which it is sealed into HDF5, read by h5py, and searched.
// All columns of a table have one length. Actors and names are indices into their tables.
namespace troupe::record {

struct JournalHeader {
  std::uint32_t format = 0;  ///< 0: the journal was cut before its header
  std::uint32_t attempt = 0;
  std::uint32_t rank = 0;
  std::string run_id;
  TROUPE_FIELDS(format, attempt, rank, run_id)
};

/// Entry 0 is the outside. An actor of another rank has an id alone.
struct ActorTable {
  std::vector<std::uint64_t> id;
  std::vector<std::string> name, class_name, gang;
  std::vector<std::uint32_t> rank;
  TROUPE_FIELDS(id, name, class_name, gang, rank)
};

/// Message types (with their TypeId), notes' and states' names (id 0).
struct NameTable {
  std::vector<std::uint64_t> id;
  std::vector<std::string> text;
  TROUPE_FIELDS(id, text)
};

/// In the order of the journal, hence of each actor. Row i's field digests are fields[fields_end[i − 1] … fields_end[i]).
struct DeliveryTable {
  std::vector<std::uint32_t> actor;
  std::vector<std::uint64_t> number;
  std::vector<std::uint32_t> sender;
  std::vector<std::uint64_t> sequence;
  std::vector<std::uint8_t> kind;
  std::vector<std::uint32_t> type;
  std::vector<std::uint32_t> sends;    ///< what the actor sent since its delivery before
  std::vector<std::int64_t> time_us;   ///< since the process began to record
  std::vector<std::uint64_t> digest, bytes, fields_end;
  std::vector<std::uint32_t> fields;
  TROUPE_FIELDS(actor, number, sender, sequence, kind, type, sends, time_us, digest, bytes, fields_end, fields)
};

struct ClockTable {
  std::vector<std::uint32_t> actor;
  std::vector<std::uint64_t> number;
  std::vector<std::int64_t> time_ns;
  TROUPE_FIELDS(actor, number, time_ns)
};

/// Notes, and states.
struct DigestTable {
  std::vector<std::uint32_t> actor;
  std::vector<std::uint64_t> number;
  std::vector<std::uint32_t> name;
  std::vector<std::uint64_t> digest, bytes, fields_end;
  std::vector<std::uint32_t> fields;
  TROUPE_FIELDS(actor, number, name, digest, bytes, fields_end, fields)
};

/// Stops, and restarts: after `number` deliveries.
struct StopTable {
  std::vector<std::uint32_t> actor;
  std::vector<std::uint64_t> number;
  std::vector<std::uint16_t> code;
  std::vector<std::string> detail;
  TROUPE_FIELDS(actor, number, code, detail)
};

/// The deliveries whose handlers begin a training step.
struct BeginTable {
  std::vector<std::uint32_t> actor;
  std::vector<std::uint64_t> number, step;
  TROUPE_FIELDS(actor, number, step)
};

/// Handlers that took 100 µs or more, up to their end or their suspension.
struct RunTable {
  std::vector<std::uint32_t> actor;
  std::vector<std::uint64_t> number, us;
  TROUPE_FIELDS(actor, number, us)
};

/// Encoded messages, one behind the other: row i is data[end[i − 1] … end[i]), that of row `delivery[i]` of the deliveries (which a kill
/// may have cut off).
struct PayloadTable {
  std::vector<std::uint32_t> sender;
  std::vector<std::uint64_t> sequence, delivery, end;
  Bytes data;
  TROUPE_FIELDS(sender, sequence, delivery, end, data)
};

/// How many rows the other tables had when the step was done here.
struct StepTable {
  std::vector<std::uint64_t> step, deliveries;
  TROUPE_FIELDS(step, deliveries)
};

struct JournalTables {
  JournalHeader header;
  ActorTable actors;
  NameTable names;
  DeliveryTable deliveries;
  ClockTable clocks;
  DigestTable notes, states;
  StopTable stops, restarts;
  BeginTable begins;
  RunTable ran;
  PayloadTable payloads;
  StepTable steps;
  bool ended = false;  ///< the writer said why it ended
  std::uint16_t end_code = 0;
  std::string end_reason;
  std::uint64_t journal_bytes = 0;  ///< of whole entries
  std::uint64_t cut_bytes = 0;      ///< of an entry that a kill cut short, at the end
  TROUPE_FIELDS(header, actors, names, deliveries, clocks, notes, states, stops, restarts, begins, ran, payloads, steps, ended, end_code, end_reason,
                journal_bytes, cut_bytes)
};

}  // namespace troupe::record
