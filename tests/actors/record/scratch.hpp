#pragma once

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

// Folders, bytes and limits for the record's tests.
namespace troupe::record {

/// A folder of its own that is gone with its owner.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "troupe-record-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

inline void write_text(const std::filesystem::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

/// With one bit of byte `i` changed; which bit depends on i.
inline std::string flipped(std::string text, std::size_t i) {
  text[i] = static_cast<char>(static_cast<unsigned char>(text[i]) ^ (1U << (i % 8)));
  return text;
}

/// Runs `body` while no file of this process may grow past `bytes`: what a full disk looks like to it.
template <class Body>
auto with_files_of_at_most(rlim_t bytes, Body body) {
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  auto* handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = bytes, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  auto result = body();
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  return result;
}

/// Exit status of a Python script run in `folder` by the system's interpreter, which has h5py.
inline int python(const std::filesystem::path& folder, const std::string& script) {
  write_text(folder / "script.py", script);
  return std::system(("cd '" + folder.string() + "' && /usr/bin/python3 script.py >&2").c_str());
}
inline bool has_h5py() { return std::system("/usr/bin/python3 -c 'import h5py' 2>/dev/null") == 0; }

}  // namespace troupe::record
