#pragma once

#include <filesystem>
#include <vector>

#include "actors/base/error.hpp"
#include "models/tokenizer.hpp"
#include "models/training/sequences.hpp"

namespace troupe::jobs {

/// Reads training data, JSONL: {"prompt", "response"} becomes one sequence whose response (and end token) is learnt; the {"text"} lines
/// together, an end token after each, are packed into sequences of `max_length` tokens, all learnt. Errors: bad_input with the line: neither kind,
/// longer than max_length, no example at all.
Result<std::vector<models::TrainingSequence>> read_examples(const std::filesystem::path& file, const models::Tokenizer& tokenizer, std::uint32_t max_length);

}  // namespace troupe::jobs
