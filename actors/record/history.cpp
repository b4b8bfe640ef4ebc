#include "actors/record/history.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "actors/actor_ref.hpp"
#include "actors/record/journal.hpp"
#include "actors/record/value_file.hpp"

namespace troupe::record {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();

/// Rows of a table whose columns must have one length before any is trusted; a sealed file vouches for its bytes, not for sense.
bool one_length(std::initializer_list<std::size_t> sizes) {
  return std::all_of(sizes.begin(), sizes.end(), [&](std::size_t size) { return size == *sizes.begin(); });
}

bool ascends_to(const std::vector<std::uint64_t>& ends, std::size_t last) {
  return std::is_sorted(ends.begin(), ends.end()) && (ends.empty() ? last == 0 : ends.back() == last);
}

template <class Index>
bool all_below(const std::vector<Index>& indices, std::size_t limit) {
  return std::all_of(indices.begin(), indices.end(), [&](Index index) { return index < limit; });
}

bool makes_sense(const DigestTable& table, std::size_t actors, std::size_t names) {
  return one_length({table.actor.size(), table.number.size(), table.name.size(), table.digest.size(), table.bytes.size(),
                     table.fields_end.size()}) &&
         ascends_to(table.fields_end, table.fields.size()) && all_below(table.actor, actors) && all_below(table.name, names);
}

bool makes_sense(const StopTable& table, std::size_t actors) {
  return one_length({table.actor.size(), table.number.size(), table.code.size(), table.detail.size()}) && all_below(table.actor, actors);
}

bool makes_sense(const JournalTables& tables) {
  const std::size_t actors = tables.actors.id.size(), names = tables.names.id.size();
  const DeliveryTable& d = tables.deliveries;
  const PayloadTable& p = tables.payloads;
  return actors > 0 && one_length({actors, tables.actors.name.size(), tables.actors.class_name.size(), tables.actors.gang.size(), tables.actors.rank.size()}) &&
         one_length({names, tables.names.text.size()}) &&
         one_length({d.actor.size(), d.number.size(), d.sender.size(), d.sequence.size(), d.kind.size(), d.type.size(), d.digest.size(),
                     d.bytes.size(), d.sends.size(), d.time_us.size(), d.fields_end.size()}) &&
         ascends_to(d.fields_end, d.fields.size()) && all_below(d.actor, actors) && all_below(d.sender, actors) &&
         all_below(d.type, names) && one_length({tables.clocks.actor.size(), tables.clocks.number.size(), tables.clocks.time_ns.size()}) &&
         all_below(tables.clocks.actor, actors) && makes_sense(tables.notes, actors, names) && makes_sense(tables.states, actors, names) &&
         one_length({p.sender.size(), p.sequence.size(), p.delivery.size(), p.end.size()}) && ascends_to(p.end, p.data.size()) &&
         all_below(p.sender, actors) && makes_sense(tables.stops, actors) && makes_sense(tables.restarts, actors) &&
         one_length({tables.begins.actor.size(), tables.begins.number.size(), tables.begins.step.size()}) && all_below(tables.begins.actor, actors) &&
         one_length({tables.ran.actor.size(), tables.ran.number.size(), tables.ran.us.size()}) && all_below(tables.ran.actor, actors) && one_length({tables.steps.step.size(), tables.steps.deliveries.size()});
}

/// Gathers the journals of one attempt, each up to the mark of `end_step`.
class SegmentBuilder {
 public:
  SegmentBuilder(const AttemptEntry& attempt, std::uint64_t end_step) : end_step_(end_step) {
    segment_.attempt = attempt.number;
    segment_.start_step = attempt.start_step;
    segment_.end_step = end_step == kNoEnd ? attempt.start_step : end_step;
    segment_.ends_at_checkpoint = end_step != kNoEnd;
    segment_.whole = true;
  }

  void add(const JournalTables& tables) {
    const auto [rows, open_ended] = rows_of(tables);
    std::vector<std::uint32_t> names;
    for (const std::string& text : tables.names.text) names.push_back(name_index(text));
    for (std::size_t i = 1; i < tables.actors.id.size(); ++i) add_actor(tables.actors, i);
    std::map<std::uint32_t, std::uint64_t> ends;  // of each actor, the number after its last delivery that counts
    for (std::size_t i = 0; i < rows; ++i) ends[tables.deliveries.actor[i]] = tables.deliveries.number[i] + (open_ended ? 0 : 1);
    const auto counts = [&](std::uint32_t actor, std::uint64_t number) {
      const auto at = ends.find(actor);
      return at != ends.end() && number < at->second;
    };
    for (std::size_t i = 0; i < rows; ++i) {
      if (counts(tables.deliveries.actor[i], tables.deliveries.number[i])) add_delivery(tables, i, names);
    }
    for (std::size_t i = 0; i < tables.clocks.actor.size(); ++i) {
      if (!counts(tables.clocks.actor[i], tables.clocks.number[i])) continue;
      of(tables, tables.clocks.actor[i]).clocks.push_back({tables.clocks.number[i], Time(tables.clocks.time_ns[i])});
    }
    for (std::size_t i = 0; i < tables.begins.actor.size(); ++i) {
      if (counts(tables.begins.actor[i], tables.begins.number[i])) of(tables, tables.begins.actor[i]).begins.push_back({tables.begins.number[i], tables.begins.step[i]});
    }
    for (std::size_t i = 0; i < tables.ran.actor.size(); ++i) {
      if (counts(tables.ran.actor[i], tables.ran.number[i])) of(tables, tables.ran.actor[i]).ran.push_back({tables.ran.number[i], tables.ran.us[i]});
    }
    add_stops(tables, tables.stops, false, counts);
    add_stops(tables, tables.restarts, true, counts);
    add_digests(tables, tables.notes, names, counts, &ActorHistory::notes);
    add_digests(tables, tables.states, names, counts, &ActorHistory::states);
    add_payloads(tables, counts);
  }

  void incomplete() { segment_.whole = false; }

  Result<Segment> take(const fs::path& folder) {
    for (auto& [id, actor] : segment_.actors) {
      if (Result<void> sorted = sort(folder, actor); !sorted) return std::move(sorted).error();
    }
    std::sort(segment_.outside.begin(), segment_.outside.end(),
              [](const RecordedPayload& a, const RecordedPayload& b) { return a.origin < b.origin; });
    std::sort(segment_.payloads.begin(), segment_.payloads.end(),
              [](const RecordedPayload& a, const RecordedPayload& b) { return std::tie(a.to, a.number) < std::tie(b.to, b.number); });
    return std::move(segment_);
  }

 private:
  struct Rows {
    std::size_t count;
    bool open_ended;  ///< the journal stops somewhere in the segment
  };
  /// Deliveries of this journal that belong to the segment.
  Rows rows_of(const JournalTables& tables) {
    const std::size_t all = tables.deliveries.actor.size();
    const StepTable& steps = tables.steps;
    if (end_step_ == kNoEnd) {
      for (std::uint64_t step : steps.step) segment_.end_step = std::max(segment_.end_step, step);
    }
    const auto mark = std::find(steps.step.begin(), steps.step.end(), end_step_);
    if (mark != steps.step.end())
      return {std::min<std::size_t>(all, steps.deliveries[static_cast<std::size_t>(mark - steps.step.begin())]), false};
    const bool open_ended = !tables.ended;
    if (open_ended || end_step_ != kNoEnd) segment_.whole = false;
    return {all, open_ended};
  }

  std::uint32_t name_index(const std::string& text) {
    const auto [at, added] = name_indices_.try_emplace(text, static_cast<std::uint32_t>(segment_.names.size()));
    if (added) segment_.names.push_back(text);
    return at->second;
  }

  void add_actor(const ActorTable& actors, std::size_t i) {
    ActorHistory& actor = segment_.actors[ActorId{actors.id[i]}];
    actor.id = ActorId{actors.id[i]};
    if (actors.name[i].empty()) return;
    actor.name = actors.name[i];
    actor.class_name = actors.class_name[i];
    actor.gang = actors.gang[i];
    actor.rank = Rank{actors.rank[i]};
  }

  ActorHistory& of(const JournalTables& tables, std::uint32_t actor) { return segment_.actors[ActorId{tables.actors.id[actor]}]; }

  static std::pair<std::uint64_t, std::uint64_t> add_fields(ActorHistory& to, const std::vector<std::uint32_t>& fields,
                                                            const std::vector<std::uint64_t>& ends, std::size_t i) {
    const std::uint64_t start = i == 0 ? 0 : ends[i - 1];
    const std::uint64_t at = to.fields.size();
    to.fields.insert(to.fields.end(), fields.begin() + static_cast<std::ptrdiff_t>(start),
                     fields.begin() + static_cast<std::ptrdiff_t>(ends[i]));
    return {at, ends[i] - start};
  }

  void add_delivery(const JournalTables& tables, std::size_t i, const std::vector<std::uint32_t>& names) {
    const DeliveryTable& table = tables.deliveries;
    ActorHistory& actor = of(tables, table.actor[i]);
    RecordedDelivery delivery;
    delivery.origin = {.sender = ActorId{tables.actors.id[table.sender[i]]}, .sequence = table.sequence[i]};
    delivery.kind = static_cast<EnvelopeKind>(table.kind[i]);
    delivery.type = names[table.type[i]];
    delivery.digest = table.digest[i];
    delivery.bytes = table.bytes[i];
    delivery.sends = table.sends[i];
    delivery.time_us = table.time_us[i];
    std::tie(delivery.fields_at, delivery.fields_count) = add_fields(actor, table.fields, table.fields_end, i);
    numbers_[actor.id].push_back(table.number[i]);
    actor.deliveries.push_back(delivery);
  }

  template <class Counts>
  void add_stops(const JournalTables& tables, const StopTable& table, bool is_restart, Counts counts) {
    for (std::size_t i = 0; i < table.actor.size(); ++i) {
      if (table.number[i] > 0 && !counts(table.actor[i], table.number[i] - 1)) continue;
      of(tables, table.actor[i]).stops.push_back({table.number[i], is_restart, {static_cast<ErrorCode>(table.code[i]), table.detail[i]}});
    }
  }

  template <class Counts>
  void add_digests(const JournalTables& tables, const DigestTable& table, const std::vector<std::uint32_t>& names, Counts counts,
                   std::vector<RecordedDigest> ActorHistory::*into) {
    for (std::size_t i = 0; i < table.actor.size(); ++i) {
      if (!counts(table.actor[i], table.number[i])) continue;
      ActorHistory& actor = of(tables, table.actor[i]);
      RecordedDigest digest{.number = table.number[i],
                            .name = names[table.name[i]],
                            .digest = table.digest[i],
                            .bytes = table.bytes[i],
                            .fields_at = 0,
                            .fields_count = 0};
      std::tie(digest.fields_at, digest.fields_count) = add_fields(actor, table.fields, table.fields_end, i);
      (actor.*into).push_back(digest);
    }
  }

  template <class Counts>
  void add_payloads(const JournalTables& tables, Counts counts) {
    const DeliveryTable& table = tables.deliveries;
    for (std::size_t p = 0; p < tables.payloads.end.size(); ++p) {
      const std::uint64_t i = tables.payloads.delivery[p];
      if (i >= table.actor.size() || !counts(table.actor[i], table.number[i])) continue;
      RecordedPayload payload;
      payload.to = ActorId{tables.actors.id[table.actor[i]]};
      payload.number = table.number[i];
      payload.origin = {.sender = ActorId{tables.actors.id[table.sender[i]]}, .sequence = table.sequence[i]};
      payload.kind = static_cast<EnvelopeKind>(table.kind[i]);
      payload.type = TypeId{tables.names.id[table.type[i]]};
      payload.type_name = tables.names.text[table.type[i]];
      const std::uint64_t start = p == 0 ? 0 : tables.payloads.end[p - 1];
      payload.payload.assign(tables.payloads.data.begin() + static_cast<std::ptrdiff_t>(start),
                             tables.payloads.data.begin() + static_cast<std::ptrdiff_t>(tables.payloads.end[p]));
      (payload.origin.sender == kOutside ? segment_.outside : segment_.payloads).push_back(std::move(payload));
    }
  }

  // An actor that moved has deliveries in several journals, each in order.
  Result<void> sort(const fs::path& folder, ActorHistory& actor) {
    const std::vector<std::uint64_t>& numbers = numbers_[actor.id];
    std::vector<std::size_t> order(numbers.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return numbers[a] < numbers[b]; });
    std::vector<RecordedDelivery> sorted;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::uint64_t number = numbers[order[i]];
      if (number == i) {
        sorted.push_back(actor.deliveries[order[i]]);
        continue;
      }
      if (number < i || segment_.whole) {
        return Error{ErrorCode::corrupt, fmt::format("{}: actor {} in attempt {}: want delivery {}, got {}", folder.string(),
                                                     segment_.name_of(actor.id), segment_.attempt, i, number)};
      }
      break;  // a kill lost what one rank saw; what came after it on another has no place
    }
    actor.deliveries = std::move(sorted);
    const auto by_number = [](const auto& a, const auto& b) { return a.number < b.number; };
    std::stable_sort(actor.clocks.begin(), actor.clocks.end(), by_number);
    std::stable_sort(actor.notes.begin(), actor.notes.end(), by_number);
    std::stable_sort(actor.states.begin(), actor.states.end(), by_number);
    std::stable_sort(actor.begins.begin(), actor.begins.end(), by_number);
    std::stable_sort(actor.ran.begin(), actor.ran.end(), by_number);
    std::stable_sort(actor.stops.begin(), actor.stops.end(), by_number);
    return {};
  }

  const std::uint64_t end_step_;
  Segment segment_;
  std::map<std::string, std::uint32_t> name_indices_;
  std::map<ActorId, std::vector<std::uint64_t>> numbers_;
};

Result<Segment> build(const fs::path& folder, const Manifest& manifest, const AttemptEntry& attempt, std::uint64_t end_step) {
  Result<std::vector<JournalTables>> ranks = read_tables(folder, manifest, attempt.number);
  if (!ranks) return std::move(ranks).error();
  SegmentBuilder builder(attempt, end_step);
  if (ranks->size() < attempt.ranks) builder.incomplete();
  for (const JournalTables& tables : *ranks) builder.add(tables);
  return builder.take(folder);
}

/// The attempt that wrote the checkpoint which `attempt` began from; 0 for none.
std::uint32_t parent_of(const Manifest& manifest, std::uint32_t attempt) {
  const std::uint64_t start = manifest.attempts[attempt - 1].start_step;
  const CheckpointEntry* checkpoint = manifest.checkpoint(start);
  // A checkpoint written again by a later attempt says nothing about this one.
  if (checkpoint != nullptr && checkpoint->attempt > 0 && checkpoint->attempt < attempt &&
      manifest.attempts[checkpoint->attempt - 1].start_step < start)
    return checkpoint->attempt;
  for (std::uint32_t earlier = attempt - 1; earlier > 0; --earlier) {
    if (manifest.attempts[earlier - 1].start_step < start) return earlier;
  }
  return 0;
}

}  // namespace

const ActorHistory* Segment::find(ActorId actor) const {
  const auto at = actors.find(actor);
  return at == actors.end() ? nullptr : &at->second;
}

std::string Segment::name_of(ActorId actor) const {
  if (actor == kOutside) return "outside";
  const ActorHistory* history = find(actor);
  return history != nullptr && !history->name.empty() ? history->name : fmt::format("{:016x}", static_cast<std::uint64_t>(actor));
}

std::uint64_t Segment::deliveries() const {
  std::uint64_t sum = 0;
  for (const auto& [id, actor] : actors) sum += actor.deliveries.size();
  return sum;
}

Result<std::vector<JournalTables>> read_tables(const fs::path& folder, const Manifest& manifest, std::uint32_t attempt) {
  std::vector<JournalTables> out;
  for (std::uint32_t rank = 0; rank < manifest.attempts.at(attempt - 1).ranks; ++rank) {
    const std::string sealed = sealed_path(attempt, rank);
    const fs::path journal = folder / journal_path(attempt, rank);
    const bool is_sealed = manifest.file(sealed) != nullptr;
    std::error_code ignored;
    if (!is_sealed && !fs::exists(journal, ignored)) continue;
    Result<JournalTables> tables = is_sealed ? load_value_file<JournalTables>(folder / sealed) : read_journal(journal);
    if (!tables) return std::move(tables).error();
    const std::string where = is_sealed ? (folder / sealed).string() : journal.string();
    if (!makes_sense(*tables))
      return Error{ErrorCode::corrupt, fmt::format("{}: want columns of equal length and indices within their tables, got others", where)};
    if (tables->header.format != 0 && tables->header.run_id != manifest.run_id) {
      return Error{ErrorCode::corrupt,
                   fmt::format("{}: want a journal of run {}, got one of {}", where, manifest.run_id, tables->header.run_id)};
    }
    out.push_back(std::move(*tables));
  }
  return out;
}

Result<Segment> read_attempt(const fs::path& folder, const Manifest& manifest, std::uint32_t attempt) {
  if (attempt == 0 || attempt > manifest.attempts.size()) {
    return Error{ErrorCode::bad_input,
                 fmt::format("{}: want an attempt from 1 to {}, got {}", folder.string(), manifest.attempts.size(), attempt)};
  }
  return build(folder, manifest, manifest.attempts[attempt - 1], kNoEnd);
}

Result<History> read_history(const fs::path& folder, std::optional<std::uint32_t> attempt) {
  Result<Manifest> manifest = read_manifest(folder);
  if (!manifest) return std::move(manifest).error();
  const auto count = static_cast<std::uint32_t>(manifest->attempts.size());
  const std::uint32_t last = attempt.value_or(count);
  if (last == 0 || last > count)
    return Error{ErrorCode::bad_input, fmt::format("{}: want an attempt from 1 to {}, got {}", folder.string(), count, last)};
  History history;
  std::map<std::uint32_t, std::uint64_t> line;  // attempt → where the line leaves it
  std::uint64_t end = kNoEnd;
  for (std::uint32_t at = last; at > 0; at = parent_of(*manifest, at)) {
    line.emplace(at, end);
    end = manifest->attempts[at - 1].start_step;
  }
  for (const auto& [number, left_at] : line) {
    Result<Segment> segment = build(folder, *manifest, manifest->attempts[number - 1], left_at);
    if (!segment) return std::move(segment).error();
    history.line.push_back(std::move(*segment));
  }
  for (const AttemptEntry& entry : manifest->attempts) {
    const auto at = line.find(entry.number);
    const std::uint64_t left_at = at == line.end() ? entry.start_step : at->second;
    if (left_at != kNoEnd)
      history.dead.push_back({.attempt = entry.number, .from_step = left_at, .to_step = std::max(left_at, entry.last_step)});
  }
  history.manifest = std::move(*manifest);
  return history;
}

}  // namespace troupe::record
