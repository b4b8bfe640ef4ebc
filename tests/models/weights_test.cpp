#include "models/weights.hpp"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstring>

#include "models/reference.hpp"
#include "models/safetensors.hpp"

namespace troupe::models {
namespace {

using testing::data_folder;
using testing::load_reference;
using testing::ScratchFolder;

/// The digest from a file's bytes alone, straight from its definition.
std::string digest_of_file(const std::filesystem::path& path) {
  const std::string file = testing::text_of(path);
  const BytesView bytes = std::as_bytes(std::span(file));
  const auto entries = parse_safetensors_header(bytes, bytes.size(), "file").value();
  std::string all;
  for (const auto& [name, entry] : entries) {
    all += name + '\0' + entry.dtype + '\0';
    for (const std::uint64_t extent : entry.shape) all.append(reinterpret_cast<const char*>(&extent), 8);
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(file.data() + entry.begin, entry.end - entry.begin));
    all.append(reinterpret_cast<const char*>(canonical.digest), 16);
  }
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(all.data(), all.size()));
  std::string hex;
  for (const unsigned char byte : canonical.digest) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    hex += digits;
  }
  return hex;
}

TEST(ModelFolder, LoadsEveryReference) {
  for (const std::string& name : testing::reference_names()) {
    const auto folder = load_model_folder(data_folder() / name);
    ASSERT_TRUE(folder) << folder.error().detail;
    EXPECT_EQ(folder->weights.size(), parameters(folder->config).size());
  }
}

TEST(ModelFolder, DigestIsThatOfTheFile) {
  for (const char* name : {"llama", "llama3", "qwen2", "qwen3"}) {
    EXPECT_EQ(weights_digest(load_reference(name).weights).hex(), digest_of_file(data_folder() / name / "model.safetensors")) << name;
  }
}

TEST(ModelFolder, DigestDependsOnNeitherShardsNorThreads) {
  const ModelFolder sharded = load_reference("qwen2_untied");
  const ScratchFolder scratch;
  ASSERT_TRUE(save_model_folder(scratch.path() / "one", sharded.config, sharded.weights));
  const std::string expected = digest_of_file(scratch.path() / "one/model.safetensors");
  for (const unsigned threads : {1U, 2U, 3U, 8U, 100U}) EXPECT_EQ(weights_digest(sharded.weights, threads).hex(), expected);
}

TEST(ModelFolder, DigestNamesTheTensorThatDiffers) {
  ModelFolder folder = load_reference("qwen2");
  const auto before = tensor_digests(folder.weights);
  folder.weights["model.norm.weight"].data[3] += 1;
  const auto after = tensor_digests(folder.weights);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(before[i].digest == after[i].digest, before[i].name != "model.norm.weight") << before[i].name;
  EXPECT_NE(combine(before), combine(after));
}

TEST(ModelFolder, SavesAndLoadsTheSame) {
  const ScratchFolder scratch;
  for (const std::string& name : testing::reference_names()) {
    const ModelFolder folder = load_reference(name);
    const auto path = scratch.path() / name;
    ASSERT_TRUE(save_model_folder(path, folder.config, folder.weights));
    const ModelFolder again = load_model_folder(path).value();
    EXPECT_EQ(again.config, folder.config) << name;
    EXPECT_EQ(weights_digest(again.weights), weights_digest(folder.weights)) << name;
    ASSERT_TRUE(save_model_folder(path, folder.config, folder.weights)) << "over what is there";
  }
  for (const auto& file : std::filesystem::recursive_directory_iterator(scratch.path())) EXPECT_NE(file.path().extension(), ".partial");
}

TEST(ModelFolder, RoundsWhatIsStoredNarrow) {
  ModelFolder folder = load_reference("qwen2_untied");
  folder.weights["model.norm.weight"].data[0] = 1.0F + 0x1p-12F;
  const Digest128 rounded = weights_digest(folder.weights);
  folder.weights["model.norm.weight"].data[0] = 1.0F;
  EXPECT_EQ(weights_digest(folder.weights), rounded);
  store_as(folder.weights, Dtype::float32);
  EXPECT_NE(weights_digest(folder.weights), rounded);
}

/// A copy of a reference that a test then spoils.
std::filesystem::path copy_of(const std::string& name, const ScratchFolder& scratch) {
  const auto path = scratch.path() / name;
  std::filesystem::copy(data_folder() / name, path);
  return path;
}

void expect_refused(const std::filesystem::path& folder, std::string_view said) {
  const auto loaded = load_model_folder(folder);
  ASSERT_FALSE(loaded) << said;
  EXPECT_NE(loaded.error().detail.find(said), std::string::npos) << loaded.error().detail;
}

TEST(ModelFolder, RefusesMissingUnexpectedAndMisshapenTensors) {
  const ScratchFolder scratch;
  const auto path = copy_of("qwen2", scratch);
  const Weights whole = load_safetensors(path / "model.safetensors").value();
  Weights weights = whole;
  weights.erase("model.norm.weight");
  ASSERT_TRUE(save_safetensors(path / "model.safetensors", weights));
  expect_refused(path, "model.norm.weight: want a tensor [32], got none");
  weights = whole;
  weights["model.extra"] = Tensor::zeros({1});
  ASSERT_TRUE(save_safetensors(path / "model.safetensors", weights));
  expect_refused(path, "model.extra");
  weights = whole;
  weights["model.norm.weight"] = Tensor::zeros({4, 8});
  ASSERT_TRUE(save_safetensors(path / "model.safetensors", weights));
  expect_refused(path, "want shape [32] by the configuration, got [4, 8]");
}

TEST(ModelFolder, AcceptsACopyOfATiedMatrixAndRefusesAnother) {
  const ScratchFolder scratch;
  const auto path = copy_of("qwen2", scratch);
  Weights weights = load_safetensors(path / "model.safetensors").value();
  const Digest128 digest = weights_digest(weights);
  weights["lm_head.weight"] = weights["model.embed_tokens.weight"];
  ASSERT_TRUE(save_safetensors(path / "model.safetensors", weights));
  EXPECT_EQ(weights_digest(load_model_folder(path)->weights), digest);
  weights["lm_head.weight"].data[5] += 1;
  ASSERT_TRUE(save_safetensors(path / "model.safetensors", weights));
  expect_refused(path, "lm_head.weight differs");
}

TEST(ModelFolder, RefusesAnIndexThatLies) {
  const ScratchFolder scratch;
  const auto path = copy_of("qwen2_untied", scratch);
  const std::string index = testing::text_of(path / "model.safetensors.index.json");
  const auto write_index = [&](std::string text) { std::ofstream(path / "model.safetensors.index.json") << text; };
  std::string other = index;
  other.replace(other.find("model-00001-of-00003"), 20, "model-00002-of-00003");
  write_index(other);
  expect_refused(path, "model.safetensors.index.json gives to");
  other = index;
  other.replace(other.find("model-00001-of-00003"), 20, "../../../etc/passwd0");
  write_index(other);
  expect_refused(path, "beside it");
  write_index("{}");
  expect_refused(path, "weight_map");
  write_index(index.substr(0, index.size() / 2));
  expect_refused(path, "bad JSON");
  write_index(index);
  std::filesystem::remove(path / "model-00003-of-00003.safetensors");
  expect_refused(path, "model-00003-of-00003.safetensors: cannot open");
}

TEST(ModelFolder, SaysWhichFilesItWants) {
  const ScratchFolder scratch;
  const auto path = copy_of("qwen2", scratch);
  std::filesystem::remove(path / "model.safetensors");
  expect_refused(path, "want model.safetensors or model.safetensors.index.json");
  std::filesystem::remove(path / "config.json");
  expect_refused(path, "config.json: cannot open");
}

}  // namespace
}  // namespace troupe::models
