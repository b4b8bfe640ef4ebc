#include "models/tokenizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "actors/base/check.hpp"
#include "models/files.hpp"
#include "models/json_reader.hpp"

namespace troupe::models {
namespace {

constexpr TokenId kBytes = 256;

void append_utf8(std::string& out, std::uint32_t point) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (point < 0x80) return put(point);
  put(0xC0U | (point >> 6U));
  put(0x80U | (point & 0x3FU));
}

/// GPT-2's alphabet: a printable character for each byte, so that a vocabulary is readable text.
const std::array<std::string, 256>& alphabet() {
  static const std::array<std::string, 256> letters = [] {
    std::array<std::string, 256> out;
    std::uint32_t next = 256;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
      append_utf8(out[byte], printable ? byte : next++);
    }
    return out;
  }();
  return letters;
}

boost::json::object vocabulary() {
  boost::json::object out;
  for (TokenId id = 0; id < kBytes; ++id) out[alphabet()[id]] = id;
  return out;
}

boost::json::object template_for(const std::string& begin, TokenId id) {
  const boost::json::value special = {{"SpecialToken", {{"id", begin}, {"type_id", 0}}}};
  const auto sequence = [](std::string_view name, int type) { return boost::json::value{{"Sequence", {{"id", name}, {"type_id", type}}}}; };
  boost::json::object tokens;
  tokens[begin] = {{"id", begin}, {"ids", boost::json::array{id}}, {"tokens", boost::json::array{boost::json::value(begin)}}};
  return {{"type", "TemplateProcessing"},
          {"single", boost::json::array{special, sequence("A", 0)}},
          {"pair", boost::json::array{special, sequence("A", 0), sequence("B", 1)}},
          {"special_tokens", tokens}};
}

/// What this build reads of a tokenizer.json; anything else is refused by name.
class Parser {
 public:
  Parser(const boost::json::object& root, std::string_view where) : root_(root), where_(where) {}

  Result<Tokenizer> parse() {
    for (const char* absent : {"normalizer", "truncation", "padding"}) {
      if (find(root_, absent) != nullptr) return refuse(absent, "null", find(root_, absent));
    }
    if (Result<void> model = check_model(); !model) return model.error();
    if (Result<void> level = check_byte_level("pre_tokenizer"); !level) return level.error();
    if (Result<void> level = check_byte_level("decoder"); !level) return level.error();
    Result<std::vector<std::string>> specials = read_specials();
    if (!specials) return specials.error();
    Result<std::optional<TokenId>> begin = read_begin(*specials);
    if (!begin) return begin.error();
    return Tokenizer(std::move(*specials), *begin);
  }

 private:
  static const boost::json::value* find(const boost::json::object& object, std::string_view key) {
    const boost::json::value* found = object.if_contains(key);
    return found == nullptr || found->is_null() ? nullptr : found;
  }
  Error refuse(std::string_view key, std::string_view wanted, const boost::json::value* got) const {
    return {ErrorCode::unsupported, fmt::format("{}: {}: this build reads byte-level tokenizers without merges and wants {}, got {}", where_, key, wanted,
                                                got == nullptr ? "nothing" : brief(*got))};
  }

  Result<void> check_model() const {
    const boost::json::value* model = find(root_, "model");
    if (model == nullptr || !model->is_object()) return refuse("model", "an object", model);
    const boost::json::object& object = model->get_object();
    const boost::json::value* type = find(object, "type");
    if (type == nullptr || *type != "BPE") return refuse("model.type", "BPE", type);
    const boost::json::value* merges = find(object, "merges");
    if (merges == nullptr || !merges->is_array()) return refuse("model.merges", "an empty array", merges);
    if (const std::size_t count = merges->get_array().size(); count != 0) {
      return Error{ErrorCode::unsupported, fmt::format("{}: model.merges: this build reads byte-level tokenizers without merges, got {} merges", where_, count)};
    }
    const boost::json::value* vocab = find(object, "vocab");
    if (vocab == nullptr || *vocab != boost::json::value(vocabulary())) return refuse("model.vocab", "GPT-2's letters of the bytes 0 to 255, in order", vocab);
    return {};
  }

  Result<void> check_byte_level(std::string_view key) const {
    const boost::json::value* step = find(root_, key);
    const boost::json::value* type = step != nullptr && step->is_object() ? find(step->get_object(), "type") : nullptr;
    if (type == nullptr || *type != "ByteLevel") return refuse(key, "ByteLevel", step);
    // The decoder's flag of that name has no effect.
    const boost::json::value* prefix = find(step->get_object(), "add_prefix_space");
    if (key == "pre_tokenizer" && (prefix == nullptr || *prefix != false)) return refuse("pre_tokenizer.add_prefix_space", "false", prefix);
    return {};
  }

  Result<std::vector<std::string>> read_specials() const {
    const boost::json::value* added = find(root_, "added_tokens");
    if (added == nullptr || !added->is_array() || added->get_array().empty()) return refuse("added_tokens", "at least the end token, id 256", added);
    std::vector<std::string> specials;
    for (const boost::json::value& value : added->get_array()) {
      if (!value.is_object()) return refuse("added_tokens", "objects", &value);
      JsonReader reader(value.get_object(), std::string(where_) + ": added_tokens");
      const std::uint32_t id = reader.whole("id");
      const std::string content = reader.text("content");
      const bool plain = reader.boolean("special", false) && !reader.boolean("single_word", false) && !reader.boolean("lstrip", false) &&
                         !reader.boolean("rstrip", false) && !reader.boolean("normalized", false);
      if (reader.error()) return *reader.error();
      const bool fresh = !content.empty() && std::ranges::find(specials, content) == specials.end();
      if (!plain || !fresh || id != kBytes + specials.size()) return refuse("added_tokens", "special tokens of distinct contents and ids 256, 257, ... without flags", &value);
      specials.push_back(content);
    }
    return specials;
  }

  Result<std::optional<TokenId>> read_begin(const std::vector<std::string>& specials) const {
    const boost::json::value* post = find(root_, "post_processor");
    if (post == nullptr) return std::optional<TokenId>{};
    for (std::size_t i = 0; i < specials.size(); ++i) {
      const TokenId id = kBytes + static_cast<TokenId>(i);
      if (*post == boost::json::value(template_for(specials[i], id))) return std::optional<TokenId>{id};
    }
    return refuse("post_processor", "null or a TemplateProcessing that puts one special token first", post);
  }

  const boost::json::object& root_;
  std::string_view where_;
};

/// Length of the well-formed UTF-8 sequence at the front (0: none), and of the maximal part to replace otherwise.
struct Sequence {
  std::size_t length = 0;
  std::size_t bad = 1;
};
Sequence front_sequence(std::string_view bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {.length = 1};
  const std::size_t length = lead >= 0xC2 && lead <= 0xDF ? 2 : lead >= 0xE0 && lead <= 0xEF ? 3 : lead >= 0xF0 && lead <= 0xF4 ? 4 : 0;
  if (length == 0) return {};
  // The second byte's range excludes overlong forms, surrogates and what lies above U+10FFFF (Unicode, table 3-7).
  const std::uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const std::uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (std::size_t i = 1; i < length; ++i) {
    const bool good = i < bytes.size() && byte(i) >= (i == 1 ? low : 0x80) && byte(i) <= (i == 1 ? high : 0xBF);
    if (!good) return {.length = 0, .bad = i};
  }
  return {.length = length};
}

}  // namespace

std::string lossy_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const Sequence sequence = front_sequence(bytes);
    if (sequence.length > 0) out += bytes.substr(0, sequence.length);
    if (sequence.length == 0) out += "\xEF\xBF\xBD";
    bytes.remove_prefix(sequence.length > 0 ? sequence.length : sequence.bad);
  }
  return out;
}

Tokenizer::Tokenizer(std::vector<std::string> specials, std::optional<TokenId> begin) : specials_(std::move(specials)), begin_(begin) {
  TROUPE_CHECK(!specials_.empty(), "the first special token is the end token");
  TROUPE_CHECK(!begin_ || is_special(*begin_), "the begin token is one of the specials");
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  std::vector<TokenId> ids;
  ids.reserve(text.size() + 1);
  if (options.add_special && begin_) ids.push_back(*begin_);
  while (!text.empty()) {
    std::size_t longest = 0;
    TokenId id = static_cast<std::uint8_t>(text.front());
    for (std::size_t i = 0; !options.literal && i < specials_.size(); ++i) {
      if (specials_[i].size() <= longest || !text.starts_with(specials_[i])) continue;
      longest = specials_[i].size();
      id = kBytes + static_cast<TokenId>(i);
    }
    ids.push_back(id);
    text.remove_prefix(std::max<std::size_t>(1, longest));
  }
  return ids;
}

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string bytes;
  for (const TokenId id : ids) {
    if (id >= size()) return Error{ErrorCode::bad_input, fmt::format("token id: want 0 to {}, got {}", size() - 1, id)};
    if (id < kBytes) bytes.push_back(static_cast<char>(id));
    if (id >= kBytes && !skip_special) bytes += specials_[id - kBytes];
  }
  return lossy_utf8(bytes);
}

std::string Tokenizer::json() const {
  boost::json::array added;
  for (std::size_t i = 0; i < specials_.size(); ++i) {
    added.push_back({{"id", kBytes + i}, {"content", specials_[i]}, {"single_word", false}, {"lstrip", false}, {"rstrip", false}, {"normalized", false}, {"special", true}});
  }
  const boost::json::value level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  const boost::json::value model = {{"type", "BPE"}, {"dropout", nullptr}, {"unk_token", nullptr}, {"continuing_subword_prefix", nullptr},
                                    {"end_of_word_suffix", nullptr}, {"fuse_unk", false}, {"byte_fallback", false}, {"ignore_merges", false},
                                    {"vocab", vocabulary()}, {"merges", boost::json::array{}}};
  const boost::json::value post = begin_ ? boost::json::value(template_for(specials_[*begin_ - kBytes], *begin_)) : boost::json::value(nullptr);
  return boost::json::serialize(boost::json::value{{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}, {"added_tokens", added},
                                                   {"normalizer", nullptr}, {"pre_tokenizer", level}, {"post_processor", post}, {"decoder", level},
                                                   {"model", model}}) + "\n";
}

Result<void> Tokenizer::save(const std::filesystem::path& folder) const {
  if (Result<void> saved = write_text(folder / "tokenizer.json", json()); !saved) return saved;
  boost::json::object config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"eos_token", specials_.front()}, {"clean_up_tokenization_spaces", false}};
  if (begin_) config["bos_token"] = specials_[*begin_ - kBytes];
  return write_text(folder / "tokenizer_config.json", boost::json::serialize(config) + "\n");
}

Result<Tokenizer> Tokenizer::parse(std::string_view json, std::string_view where) {
  Result<boost::json::value> parsed = parse_json(json, where, ErrorCode::corrupt);
  if (!parsed) return parsed.error();
  if (!parsed->is_object()) return Error{ErrorCode::corrupt, fmt::format("{}: want an object, got {}", where, brief(*parsed))};
  return Parser(parsed->get_object(), where).parse();
}

Result<Tokenizer> Tokenizer::load(const std::filesystem::path& folder_or_file) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(folder_or_file, ignored);
  const std::filesystem::path file = folder ? folder_or_file / "tokenizer.json" : folder_or_file;
  if (folder && !std::filesystem::exists(file, ignored)) {
    return Error{ErrorCode::bad_input, fmt::format("{}: want a tokenizer.json, got none: this model takes token ids alone (token_ids instead of prompt or text)", folder_or_file.string())};
  }
  Result<std::string> text = read_text(file);
  if (!text) return text.error();
  return parse(*text, file.string());
}

}  // namespace troupe::models
