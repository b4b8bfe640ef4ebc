#include "jobs/run_folder/inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <vector>

#include "actors/base/digest.hpp"
#include "jobs/report/json.hpp"
#include "models/files.hpp"

namespace troupe::jobs {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

// The files of a model folder that a job reads, ascending.
std::vector<fs::path> files_of(const fs::path& path) {
  std::error_code code;
  if (fs::is_regular_file(path, code)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path, code)) {
    const std::string name = entry.path().filename().string();
    const bool is_wanted = name.ends_with(".safetensors") || name == "config.json" || name == "generation_config.json" || name == "tokenizer.json" ||
                           name == "tokenizer_config.json" || name == "model.safetensors.index.json";
    if (is_wanted && entry.is_regular_file(code)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::uint64_t bytes_of(const std::vector<fs::path>& files) {
  std::uint64_t bytes = 0;
  std::error_code code;
  for (const fs::path& file : files) bytes += fs::file_size(file, code);
  return bytes;
}

Result<void> add_content(const fs::path& path, Digester& digester) {
  auto file = models::InputFile::open(path);
  if (!file) return file.error();
  std::vector<std::byte> block(1 << 20);
  for (std::uint64_t offset = 0; offset < file->size(); offset += block.size()) {
    const auto part = std::span(block).first(static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), file->size() - offset)));
    if (auto done = file->read_at(offset, part); !done) return done;
    digester.add(part);
  }
  return {};
}

// Keys that name inputs, with their fields.
template <class Config, class Visit>
void each_input(Config& config, Visit&& visit) {
  std::visit(
      [&](auto& held) {
        visit("model.path", held.common.model_path);
        if constexpr (std::same_as<std::decay_t<decltype(held)>, SftConfig>) visit("data.path", held.data.path);
      },
      config);
}

fs::path kept_at(std::string_view key, const fs::path& source) {
  return key == "model.path" ? fs::path("inputs") / "model" : fs::path("inputs") / (std::string(key.substr(0, key.find('.'))) + source.extension().string());
}

Result<void> copy_files(const std::vector<fs::path>& files, const fs::path& source, const fs::path& to) {
  std::error_code code;
  const bool is_folder = fs::is_directory(source, code);
  fs::create_directories(is_folder ? to : to.parent_path(), code);
  for (const fs::path& file : files) {
    fs::copy_file(file, is_folder ? to / file.filename() : to, fs::copy_options::overwrite_existing, code);
    if (code) return Error{ErrorCode::io, fmt::format("{}: could not be copied into {}: {}", file.string(), to.string(), code.message())};
  }
  return {};
}

}  // namespace

Result<std::string> input_digest(const fs::path& path) {
  Digester digester;
  std::error_code code;
  const bool is_folder = fs::is_directory(path, code);
  for (const fs::path& file : files_of(path)) {
    if (is_folder) digester.add(fmt::format("{}\n{}\n", file.filename().string(), fs::file_size(file, code)));
    if (auto done = add_content(file, digester); !done) return done.error();
  }
  return digester.digest().hex();
}

Result<Inputs> keep_inputs(const fs::path& run, const JobConfig& config) {
  Inputs inputs;
  std::optional<Error> error;
  each_input(config, [&](std::string_view key, const fs::path& source) {
    if (source.empty() || error) return;
    auto digest = input_digest(source);
    if (!digest) return void(error = digest.error());
    const auto files = files_of(source);
    const bool is_kept = bytes_of(files) <= kKeptBytesMax;
    const fs::path kept = kept_at(key, source);
    if (is_kept) {
      if (auto done = copy_files(files, source, run / kept); !done) return void(error = done.error());
    }
    inputs.emplace(key, Input{is_kept ? kept.string() : fs::absolute(source).string(), *digest});
  });
  if (error) return *error;
  return inputs;
}

Result<void> write_inputs(const fs::path& run, const Inputs& inputs) {
  std::string text;
  for (const auto& [key, input] : inputs) {
    text += fmt::format("{}{}: {{\"path\": {}, \"digest\": {}}}", text.empty() ? "" : ",\n ", json_string(key), json_string(input.path), json_string(input.digest));
  }
  return models::write_text(run / "inputs.json", "{" + text + "}\n");
}

Result<Inputs> read_inputs(const fs::path& run) {
  const fs::path file = run / "inputs.json";
  auto text = models::read_text(file);
  if (!text) return text.error();
  try {
    Inputs inputs;
    const json::value value = json::parse(*text);
    for (const auto& [key, input] : value.as_object()) {
      inputs.emplace(key, Input{std::string(input.as_object().at("path").as_string()), std::string(input.as_object().at("digest").as_string())});
    }
    return inputs;
  } catch (const std::exception&) {  // of Boost.JSON
    return Error{ErrorCode::corrupt, fmt::format("{}: want a run's inputs, got something else", file.string())};
  }
}

JobConfig with_inputs(JobConfig config, const Inputs& inputs, const fs::path& base) {
  each_input(config, [&](std::string_view key, fs::path& field) {
    if (const auto found = inputs.find(std::string(key)); found != inputs.end()) field = base / found->second.path;
  });
  return config;
}

Result<void> check_inputs(const JobConfig& config, const Inputs& inputs) {
  std::optional<Error> error;
  each_input(config, [&](std::string_view key, const fs::path& source) {
    const auto found = inputs.find(std::string(key));
    if (error || (source.empty() && found == inputs.end())) return;
    auto digest = source.empty() ? Result<std::string>("nothing") : input_digest(source);
    if (!digest) return void(error = digest.error());
    const std::string wanted = found == inputs.end() ? "nothing" : found->second.digest;
    if (*digest != wanted) error = Error{ErrorCode::bad_input, fmt::format("{}: the run was started from other contents: want digest {}, got {} ({})", key, wanted, *digest, source.string())};
  });
  if (error) return *error;
  return {};
}

}  // namespace troupe::jobs
