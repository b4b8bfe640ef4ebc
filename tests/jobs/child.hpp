#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

namespace troupe::jobs {

struct Ended {
  int code = -1;  ///< −signal when one killed it
  std::string out, err;
};

/// A program with its outputs in pipes.
class Child {
 public:
  explicit Child(std::vector<std::string> words) {
    pipe2(out_.data(), O_CLOEXEC);
    pipe2(err_.data(), O_CLOEXEC);
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    process_ = fork();
    if (process_ == 0) {
      dup2(out_[1], STDOUT_FILENO);
      dup2(err_[1], STDERR_FILENO);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    close(out_[1]);
    close(err_[1]);
  }
  ~Child() {
    close(out_[0]);
    close(err_[0]);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t process() const { return process_; }

  /// The next line of its stdout, without its end; empty at the end.
  std::string line() {
    std::string text;
    for (char c = 0; ::read(out_[0], &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }

  /// Waits for its end. What it writes must fit into the pipes' buffers.
  Ended end() {
    Ended ended;
    int status = 0;
    ended.out = all(out_[0]);
    ended.err = all(err_[0]);
    waitpid(process_, &status, 0);
    ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    return ended;
  }

 private:
  static std::string all(int fd) {
    std::string text;
    std::array<char, 4096> block{};
    for (ssize_t count = 0; (count = ::read(fd, block.data(), block.size())) > 0;) text.append(block.data(), static_cast<std::size_t>(count));
    return text;
  }

  std::array<int, 2> out_{}, err_{};
  pid_t process_ = 0;
};

}  // namespace troupe::jobs
