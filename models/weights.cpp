#include "models/weights.hpp"

#include <fmt/format.h>

#include <atomic>
#include <bit>
#include <cstring>
#include <set>
#include <thread>

#include "models/files.hpp"
#include "models/json_reader.hpp"
#include "models/safetensors.hpp"

namespace troupe::models {
namespace {

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";

/// weight_map of an index: tensor → file, both checked to be texts and plain file names.
Result<std::map<std::string, std::string>> load_index(const std::filesystem::path& path) {
  Result<std::string> text = read_text(path);
  if (!text) return text.error();
  Result<boost::json::value> parsed = parse_json(*text, path.string(), ErrorCode::corrupt);
  if (!parsed) return parsed.error();
  const boost::json::value* map = parsed->is_object() ? parsed->get_object().if_contains("weight_map") : nullptr;
  if (map == nullptr || !map->is_object()) return Error{ErrorCode::corrupt, fmt::format("{}: weight_map: want an object, got none", path.string())};
  std::map<std::string, std::string> files;
  for (const auto& [name, file] : map->get_object()) {
    const bool plain = file.is_string() && file.get_string().find('/') == boost::json::string::npos && file.get_string().ends_with(".safetensors");
    if (!plain) return Error{ErrorCode::corrupt, fmt::format("{}: {}: want the name of a .safetensors file beside it, got {}", path.string(), std::string_view(name), brief(file))};
    files.emplace(name, file.get_string());
  }
  return files;
}

/// One shard's tensors are those that the index gives it, no others.
Result<void> add_shard(const std::filesystem::path& folder, const std::string& file, const std::map<std::string, std::string>& index, Weights& weights) {
  Result<Weights> shard = load_safetensors(folder / file);
  if (!shard) return shard.error();
  for (auto& [name, tensor] : *shard) {
    const auto entry = index.find(name);
    if (entry == index.end() || entry->second != file) {
      return Error{ErrorCode::corrupt, fmt::format("{}: holds {}, which {} gives to {}", (folder / file).string(), name, kIndex, entry == index.end() ? "no file" : entry->second)};
    }
    weights.emplace(name, std::move(tensor));
  }
  return {};
}

Result<Weights> load_weights(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (std::filesystem::exists(folder / kSingle, ignored)) return load_safetensors(folder / kSingle);
  if (!std::filesystem::exists(folder / kIndex, ignored)) {
    return Error{ErrorCode::bad_input, fmt::format("{}: want {} or {}, got neither", folder.string(), kSingle, kIndex)};
  }
  Result<std::map<std::string, std::string>> index = load_index(folder / kIndex);
  if (!index) return index.error();
  std::set<std::string> files;
  for (const auto& [name, file] : *index) files.insert(file);
  Weights weights;
  for (const std::string& file : files) {
    if (Result<void> added = add_shard(folder, file, *index, weights); !added) return added.error();
  }
  for (const auto& [name, file] : *index) {
    if (!weights.contains(name)) return Error{ErrorCode::corrupt, fmt::format("{}: {}: want it in {}, which does not hold it", (folder / kIndex).string(), name, file)};
  }
  return weights;
}

/// What files of the same model may hold beside its parameters: rotary tables of older Llama files, a copy of a tied matrix.
Result<void> drop_redundant(const ModelConfig& config, const std::filesystem::path& folder, Weights& weights) {
  std::erase_if(weights, [](const auto& item) { return item.first.ends_with(".self_attn.rotary_emb.inv_freq"); });
  const auto output = weights.find("lm_head.weight");
  if (!config.tied_embeddings || output == weights.end()) return {};
  const auto embedding = weights.find("model.embed_tokens.weight");
  const bool equal = embedding != weights.end() && embedding->second.data.size() == output->second.data.size() &&
                     std::memcmp(embedding->second.data.data(), output->second.data.data(), output->second.data.size() * sizeof(float)) == 0;
  if (!equal) {
    return Error{ErrorCode::corrupt, fmt::format("{}: lm_head.weight differs from model.embed_tokens.weight, but config.json says tie_word_embeddings", folder.string())};
  }
  weights.erase(output);
  return {};
}

std::string generation_json(const ModelConfig& config) {
  const auto list = boost::json::value_from(config.eos_token_ids);
  const std::string eos = config.eos_token_ids.empty() ? "null" : config.eos_token_ids.size() == 1 ? std::to_string(config.eos_token_ids[0]) : boost::json::serialize(list);
  return fmt::format("{{\n  \"bos_token_id\": {},\n  \"eos_token_id\": {}\n}}\n", config.bos_token_id ? std::to_string(*config.bos_token_id) : "null", eos);
}

/// The files of a folder that is there. config.json comes last: a folder without it is no model.
Result<void> write_files(const std::filesystem::path& folder, ModelConfig config, const Weights& weights, const Tokenizer* tokenizer) {
  const bool narrow = std::ranges::all_of(weights, [](const auto& item) { return item.second.dtype == Dtype::bfloat16; });
  config.dtype = narrow ? Dtype::bfloat16 : Dtype::float32;
  if (Result<void> saved = save_safetensors(folder / kSingle, weights); !saved) return saved;
  if (Result<void> saved = write_text(folder / "generation_config.json", generation_json(config)); !saved) return saved;
  if (tokenizer != nullptr) {
    if (Result<void> saved = tokenizer->save(folder); !saved) return saved;
  }
  return write_text(folder / "config.json", config_json(config));
}

void add_u64(Digester& digester, std::uint64_t value) { digester.add(std::as_bytes(std::span(&value, 1))); }

Digest128 data_digest(const Tensor& tensor) {
  Digester digester;
  each_stored_block(tensor, [&](BytesView block) { digester.add(block); });
  return digester.digest();
}

}  // namespace

Result<ModelFolder> load_model_folder(const std::filesystem::path& folder) {
  Result<ModelConfig> config = load_config(folder);
  if (!config) return config.error();
  Result<Weights> weights = load_weights(folder);
  if (!weights) return weights.error();
  if (Result<void> dropped = drop_redundant(*config, folder, *weights); !dropped) return dropped.error();
  if (Result<void> checked = check_weights(*config, *weights); !checked) {
    return Error{checked.error().code, fmt::format("{}: {}", folder.string(), checked.error().detail)};
  }
  return ModelFolder{std::move(*config), std::move(*weights)};
}

Result<void> save_model_folder(const std::filesystem::path& folder, const ModelConfig& config, const Weights& weights, const Tokenizer* tokenizer) {
  if (Result<void> checked = check_weights(config, weights); !checked) return checked;
  const auto failed = [&](std::string_view verb, const std::error_code& code) {
    return Error{ErrorCode::io, fmt::format("{}: cannot {}: {}", folder.string(), verb, code.message())};
  };
  std::error_code code;
  if (std::filesystem::exists(folder, code)) return write_files(folder, config, weights, tokenizer);
  std::filesystem::path partial = folder.has_filename() ? folder : folder.parent_path();
  const std::filesystem::path target = partial;
  partial += ".partial";
  std::filesystem::remove_all(partial, code);
  if (!std::filesystem::create_directories(partial, code)) return failed("create it", code);
  Result<void> written = write_files(partial, config, weights, tokenizer);
  if (written) std::filesystem::rename(partial, target, code);
  if (written && !code) return {};
  std::error_code ignored;
  std::filesystem::remove_all(partial, ignored);
  return written ? Result<void>(failed("rename to it", code)) : written;
}

void store_as(Weights& weights, Dtype dtype) {
  for (auto& [name, tensor] : weights) tensor.dtype = dtype;
}

std::vector<TensorDigest> tensor_digests(const Weights& weights, unsigned threads) {
  std::vector<TensorDigest> digests;
  std::vector<const Tensor*> tensors;
  for (const auto& [name, tensor] : weights) {
    digests.push_back({name, tensor.dtype, tensor.shape, {}});
    tensors.push_back(&tensor);
  }
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < tensors.size(); i = next++) digests[i].digest = data_digest(*tensors[i]);
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < std::min<std::size_t>(threads, tensors.size()); ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return digests;
}

Digest128 combine(const std::vector<TensorDigest>& digests) {
  Digester digester;
  const std::byte zero{0};
  for (const TensorDigest& tensor : digests) {
    digester.add(tensor.name);
    digester.add(BytesView(&zero, 1));
    digester.add(to_string(tensor.dtype));
    digester.add(BytesView(&zero, 1));
    for (const std::uint64_t extent : tensor.shape) add_u64(digester, extent);
    digester.add(tensor.digest.canonical());
  }
  return digester.digest();
}

Digest128 weights_digest(const Weights& weights, unsigned threads) { return combine(tensor_digests(weights, threads)); }

}  // namespace troupe::models
