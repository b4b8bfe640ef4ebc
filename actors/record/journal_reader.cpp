#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "actors/base/digest.hpp"
#include "actors/record/journal.hpp"

namespace troupe::record {
namespace {

/// An entry whose checks hold and that still makes no sense: an error of the writer, or bytes that were forged.
struct Nonsense {
  std::string detail;
};

class Fields {
 public:
  explicit Fields(BytesView in) : in_(in) {}

  std::uint8_t byte() { return std::to_integer<std::uint8_t>(take(1)[0]); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint64_t part = byte();
      value |= (part & 127) << shift;
      if (part < 128) return value;
    }
    throw Nonsense{"a number of more than 64 bits"};
  }
  std::uint32_t varint32() {
    const std::uint64_t value = varint();
    if (value > 0xFFFFFFFFU) throw Nonsense{"a number of more than 32 bits"};
    return static_cast<std::uint32_t>(value);
  }
  std::uint64_t u64() {
    std::uint64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() {
    const BytesView bytes = take(varint());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  BytesView rest() { return take(in_.size()); }
  bool empty() const { return in_.empty(); }

 private:
  BytesView take(std::uint64_t count) {
    if (count > in_.size()) throw Nonsense{fmt::format("want {} more bytes of an entry, got {}", count, in_.size())};
    const BytesView taken = in_.first(count);
    in_ = in_.subspan(count);
    return taken;
  }
  BytesView in_;
};

void add_actor(ActorTable& actors, std::uint64_t id) {
  actors.id.push_back(id);
  actors.name.emplace_back();
  actors.class_name.emplace_back();
  actors.gang.emplace_back();
  actors.rank.push_back(0xFFFFFFFF);
}

class TableBuilder {
 public:
  TableBuilder() { add_actor(tables_.actors, 0); }

  void add(BytesView body) {
    Fields fields(body);
    const std::uint8_t type = fields.byte();
    if (tables_.header.format == 0 && type != static_cast<std::uint8_t>(EntryType::header)) throw Nonsense{"want the header first"};
    switch (static_cast<EntryType>(type)) {
      case EntryType::header:
        header(fields);
        break;
      case EntryType::actor:
        actor(fields);
        break;
      case EntryType::spawned:
        spawned(fields);
        break;
      case EntryType::stopped:
        stopped(fields, tables_.stops);
        break;
      case EntryType::restarted:
        stopped(fields, tables_.restarts);
        break;
      case EntryType::begins:
        begins(fields);
        break;
      case EntryType::ran:
        ran(fields);
        break;
      case EntryType::name:
        name(fields);
        break;
      case EntryType::delivery:
        delivery(fields);
        break;
      case EntryType::clock:
        clock(fields);
        break;
      case EntryType::note:
        digest(fields, tables_.notes);
        break;
      case EntryType::state:
        digest(fields, tables_.states);
        break;
      case EntryType::payload:
        payload(fields);
        break;
      case EntryType::step:
        step(fields);
        break;
      case EntryType::end:
        end(fields);
        break;
      default:
        throw Nonsense{fmt::format("an entry of unknown type {}", type)};
    }
    if (!fields.empty()) throw Nonsense{"an entry longer than its fields"};
  }
  JournalTables take() {
    drop_open_payload();
    return std::move(tables_);
  }

 private:
  std::uint32_t actor_of(Fields& fields) {
    const std::uint32_t index = fields.varint32();
    if (index >= tables_.actors.id.size()) throw Nonsense{fmt::format("actor {} of {}", index, tables_.actors.id.size())};
    return index;
  }
  std::uint32_t name_of(Fields& fields) {
    const std::uint32_t index = fields.varint32();
    if (index >= tables_.names.id.size()) throw Nonsense{fmt::format("name {} of {}", index, tables_.names.id.size())};
    return index;
  }
  static std::uint16_t code_of(Fields& fields) { return static_cast<std::uint16_t>(fields.varint()); }

  void header(Fields& fields) {
    if (tables_.header.format != 0) throw Nonsense{"a second header"};
    tables_.header.format = fields.varint32();
    tables_.header.attempt = fields.varint32();
    tables_.header.rank = fields.varint32();
    tables_.header.run_id = fields.text();
  }
  void actor(Fields& fields) {
    if (fields.varint() != tables_.actors.id.size()) throw Nonsense{"an actor out of order"};
    add_actor(tables_.actors, fields.u64());
  }
  void spawned(Fields& fields) {
    const std::uint32_t at = actor_of(fields);
    tables_.actors.name[at] = fields.text();
    tables_.actors.class_name[at] = fields.text();
    tables_.actors.gang[at] = fields.text();
    tables_.actors.rank[at] = fields.varint32();
  }
  void stopped(Fields& fields, StopTable& table) {
    table.actor.push_back(actor_of(fields));
    table.number.push_back(fields.varint());
    table.code.push_back(code_of(fields));
    table.detail.push_back(fields.text());
  }
  void begins(Fields& fields) {
    tables_.begins.actor.push_back(actor_of(fields));
    tables_.begins.number.push_back(fields.varint());
    tables_.begins.step.push_back(fields.varint());
  }
  void ran(Fields& fields) {
    tables_.ran.actor.push_back(actor_of(fields));
    tables_.ran.number.push_back(fields.varint());
    tables_.ran.us.push_back(fields.varint());
  }
  void name(Fields& fields) {
    if (fields.varint() != tables_.names.id.size()) throw Nonsense{"a name out of order"};
    tables_.names.id.push_back(fields.u64());
    tables_.names.text.push_back(fields.text());
  }
  static void field_digests(Fields& fields, std::vector<std::uint32_t>& out, std::vector<std::uint64_t>& ends) {
    const BytesView rest = fields.rest();
    if (rest.size() % 4 != 0) throw Nonsense{"field digests of less than four bytes"};
    const std::size_t before = out.size();
    out.resize(before + rest.size() / 4);
    if (!rest.empty()) std::memcpy(out.data() + before, rest.data(), rest.size());
    ends.push_back(out.size());
  }
  void delivery(Fields& fields) {
    DeliveryTable& table = tables_.deliveries;
    table.actor.push_back(actor_of(fields));
    table.number.push_back(fields.varint());
    table.sender.push_back(actor_of(fields));
    table.sequence.push_back(fields.varint());
    table.kind.push_back(static_cast<std::uint8_t>(fields.byte() & kKindMask));
    table.type.push_back(name_of(fields));
    table.sends.push_back(fields.varint32());
    time_us_ += zigzag(fields);
    table.time_us.push_back(time_us_);
    table.digest.push_back(fields.u64());
    table.bytes.push_back(fields.varint());
    field_digests(fields, table.fields, table.fields_end);
  }
  static std::int64_t zigzag(Fields& fields) {
    const std::uint64_t raw = fields.varint();
    return static_cast<std::int64_t>(raw >> 1U) ^ -static_cast<std::int64_t>(raw & 1U);
  }
  void clock(Fields& fields) {
    tables_.clocks.actor.push_back(actor_of(fields));
    tables_.clocks.number.push_back(fields.varint());
    tables_.clocks.time_ns.push_back(zigzag(fields));
  }
  void digest(Fields& fields, DigestTable& table) {
    table.actor.push_back(actor_of(fields));
    table.number.push_back(fields.varint());
    table.name.push_back(name_of(fields));
    table.digest.push_back(fields.u64());
    table.bytes.push_back(fields.varint());
    field_digests(fields, table.fields, table.fields_end);
  }
  void payload(Fields& fields) {
    PayloadTable& table = tables_.payloads;
    const std::uint32_t sender = actor_of(fields);
    const std::uint64_t sequence = fields.varint();
    const std::uint64_t total = fields.varint();
    const std::uint64_t offset = fields.varint();
    const BytesView piece = fields.rest();
    if (offset == 0) {
      drop_open_payload();
      open_ = {.sender = sender, .sequence = sequence, .total = total, .start = table.data.size()};
    }
    const std::uint64_t have = table.data.size() - open_.start;
    if (sender != open_.sender || sequence != open_.sequence || total != open_.total || offset != have || piece.size() > total - have) {
      throw Nonsense{"a payload's piece out of order"};
    }
    table.data.insert(table.data.end(), piece.begin(), piece.end());
    if (have + piece.size() < total) return;
    table.sender.push_back(sender);
    table.sequence.push_back(sequence);
    table.delivery.push_back(tables_.deliveries.actor.size());  // the entry that follows
    table.end.push_back(table.data.size());
    open_.start = table.data.size();
  }
  void step(Fields& fields) {
    tables_.steps.step.push_back(fields.varint());
    tables_.steps.deliveries.push_back(tables_.deliveries.actor.size());
  }
  void end(Fields& fields) {
    tables_.ended = true;
    tables_.end_code = code_of(fields);
    tables_.end_reason = fields.text();
  }
  // Of a payload whose last pieces were cut off, the delivery that cites it was cut off too.
  void drop_open_payload() { tables_.payloads.data.resize(open_.start); }

  struct OpenPayload {
    std::uint32_t sender = 0;
    std::uint64_t sequence = 0, total = 0;
    std::size_t start = 0;
  };
  JournalTables tables_;
  OpenPayload open_;
  std::int64_t time_us_ = 0;
};

bool all_zero(BytesView bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

Result<JournalTables> read_journal(const std::filesystem::path& path) {
  Result<Bytes> file = read_file(path);
  if (!file) return std::move(file).error();
  const BytesView bytes(*file);
  const auto corrupt = [&](std::size_t at, std::string_view what) {
    return Error{ErrorCode::corrupt, fmt::format("{}: {} at byte {} of {}", path.string(), what, at, bytes.size())};
  };
  TableBuilder builder;
  std::size_t at = std::min(kJournalMagic.size(), bytes.size());
  if (!std::equal(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(at), std::as_bytes(std::span(kJournalMagic)).begin()))
    return corrupt(0, "want TROUPEJ1, got something else");
  if (bytes.size() < kJournalMagic.size()) at = 0;
  // A machine that lost power may leave zeros where it had not written yet.
  while (bytes.size() - at >= kFrameHeaderBytes && at > 0 && !(bytes[at] == std::byte{0} && all_zero(bytes.subspan(at)))) {
    std::uint32_t head = 0, crc = 0;
    std::memcpy(&head, bytes.data() + at, sizeof head);
    std::memcpy(&crc, bytes.data() + at + sizeof head, sizeof crc);
    const std::uint32_t length = head & kFrameBodyMax;
    if (head >> 24U != length_check(length) || length == 0) return corrupt(at, "want an entry's length, got something else");
    if (length > bytes.size() - at - kFrameHeaderBytes) break;
    const BytesView body = bytes.subspan(at + kFrameHeaderBytes, length);
    if (crc32c(body) != crc) return corrupt(at, fmt::format("an entry: want checksum {:08x}, got {:08x}", crc, crc32c(body)));
    try {
      builder.add(body);
    } catch (const Nonsense& nonsense) {
      return corrupt(at, nonsense.detail);
    }
    at += kFrameHeaderBytes + length;
  }
  JournalTables tables = builder.take();
  if (tables.header.format != kJournalFormat && tables.header.format != 0)
    return Error{ErrorCode::unsupported, fmt::format("{}: want format {}, got {}", path.string(), kJournalFormat, tables.header.format)};
  tables.journal_bytes = at;
  tables.cut_bytes = bytes.size() - at;
  return tables;
}

}  // namespace troupe::record
