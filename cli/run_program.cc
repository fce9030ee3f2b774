#include "cli/run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace clew::cli {
namespace {

// Owns what posix_spawn does with descriptors: /dev/null for stdin and stderr,
// `output` for stdout.
class SpawnActions {
 public:
  explicit SpawnActions(int output) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null",
                                     O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions_, STDERR_FILENO, "/dev/null",
                                     O_WRONLY, 0);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

Result<pid_t> Spawn(const std::vector<std::string>& arguments, int output) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));  // never written to
  }
  argv.push_back(nullptr);
  const SpawnActions actions(output);
  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, argv[0], actions.get(), nullptr, argv.data(), environ);
  if (error != 0) {
    return SystemError(error, fmt::format("cannot run {:?}", arguments[0]));
  }
  return pid;
}

std::string ReadToEnd(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return text;
    }
    const size_t room = kCapturedBytesMax - text.size();
    text.append(buffer.data(), std::min(room, static_cast<size_t>(count)));
  }
}

int WaitFor(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Result<ProgramOutput> RunProgram(const std::vector<std::string>& arguments) {
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return SystemError(errno, "cannot make a pipe");
  }
  const Result<pid_t> pid = Spawn(arguments, ends[1]);
  close(ends[1]);
  if (!pid) {
    close(ends[0]);
    return std::unexpected(pid.error());
  }
  ProgramOutput output;
  output.text = ReadToEnd(ends[0]);
  close(ends[0]);
  output.exit_status = WaitFor(*pid);
  return output;
}

std::string FindInPath(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string candidate =
        fmt::format("{}/{}", rest.substr(0, end), name);
    if (access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return "";
}

}  // namespace clew::cli
