#pragma once

// The reference folders of tests/data/models and their cases.

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "models/weights.hpp"

namespace troupe::models::testing {

inline std::filesystem::path data_folder() { return std::filesystem::path(TROUPE_SOURCE_DIR) / "tests/data/models"; }

inline const std::vector<std::string>& reference_names() {
  static const std::vector<std::string> names = {"llama", "llama3", "llama_linear", "llama_yarn", "llama_yarn_explicit", "qwen2", "qwen2_untied", "qwen3"};
  return names;
}

inline ModelFolder load_reference(const std::string& name) { return load_model_folder(data_folder() / name).value(); }

inline std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// A fresh folder for one test, removed at its end.
class ScratchFolder {
 public:
  ScratchFolder() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string(test->test_suite_name()) + "." + test->name();
    for (char& letter : name) letter = letter == '/' ? '_' : letter;
    path_ = std::filesystem::path(::testing::TempDir()) / ("troupe-" + name);
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// A small configuration with odd sizes, for tests that need no reference values.
inline ModelConfig tiny_config() {
  ModelConfig config;
  config.vocab_size = 37;
  config.hidden_size = 24;
  config.intermediate_size = 31;
  config.layers = 2;
  config.heads = 8;
  config.kv_heads = 4;
  config.head_dim = 6;
  config.positions_max = 256;
  config.eos_token_ids = {3};
  return config;
}

}  // namespace troupe::models::testing
