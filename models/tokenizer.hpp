#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/base/error.hpp"

namespace troupe::models {

using TokenId = std::uint32_t;

/// A byte-level tokenizer: ids 0…255 are bytes, special tokens follow. In a model folder it is a tokenizer.json that Hugging Face's
/// tokenizers read alike (byte-level BPE without merges, the specials as added tokens). Immutable; any thread.
class Tokenizer {
 public:
  /// Bytes and "<|endoftext|>" (256), the end token.
  static Tokenizer bytes() { return Tokenizer({"<|endoftext|>"}); }
  /// Specials take the ids 256, 257, …; the first is the end token. `begin`: a special put before every text unless told otherwise.
  /// Precondition: at least one special, none empty, all distinct; begin is one of them.
  explicit Tokenizer(std::vector<std::string> specials, std::optional<TokenId> begin = {});

  /// FOLDER/tokenizer.json, or the file itself. Errors: bad_input when there is none (with advice), corrupt, unsupported for any other tokenizer.
  static Result<Tokenizer> load(const std::filesystem::path& folder_or_file);
  static Result<Tokenizer> parse(std::string_view json, std::string_view where);
  /// Writes tokenizer.json and tokenizer_config.json into the folder, aside and renamed.
  Result<void> save(const std::filesystem::path& folder) const;
  std::string json() const;

  struct EncodeOptions {
    bool add_special = true;  ///< the begin token, where there is one
    bool literal = false;     ///< special tokens in the text are plain text
  };
  /// Never fails: any bytes are tokens.
  std::vector<TokenId> encode(std::string_view text, EncodeOptions options) const;
  std::vector<TokenId> encode(std::string_view text) const { return encode(text, {}); }

  /// UTF-8: each maximal part of bytes that is none becomes U+FFFD, as Python's and Rust's lossy decoding do.
  /// Errors: bad_input for an id that the tokenizer does not have.
  Result<std::string> decode(std::span<const TokenId> ids, bool skip_special = false) const;

  std::uint32_t size() const { return 256 + static_cast<std::uint32_t>(specials_.size()); }
  TokenId end() const { return 256; }
  std::optional<TokenId> begin() const { return begin_; }
  /// Their texts; special i has id 256 + i.
  const std::vector<std::string>& specials() const { return specials_; }
  bool is_special(TokenId id) const { return id >= 256 && id < size(); }
  bool operator==(const Tokenizer&) const = default;

 private:
  std::vector<std::string> specials_;
  std::optional<TokenId> begin_;
};

/// Replaces what is not UTF-8: one U+FFFD for each maximal part (Unicode 15, section 3.9, as the WHATWG decoder).
std::string lossy_utf8(std::string_view bytes);

}  // namespace troupe::models
