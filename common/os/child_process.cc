#include "common/os/child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "common/check.h"
#include "common/os/exec_arguments.h"

namespace clew {
namespace {

bool IsProgram(const std::string& path) {
  struct stat info = {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         access(path.c_str(), X_OK) == 0;
}

// Owns what posix_spawn(3) does with descriptors.
class SpawnActions {
 public:
  explicit SpawnActions(const SpawnOptions& options) {
    posix_spawn_file_actions_init(&actions_);
    Give(options.input, STDIN_FILENO);
    Give(options.output, STDOUT_FILENO);
    Give(options.errors, STDERR_FILENO);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() { posix_spawn_file_actions_destroy(&actions_); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  void Give(int fd, int number) {
    if (fd >= 0) {
      posix_spawn_file_actions_adddup2(&actions_, fd, number);
    }
  }
  posix_spawn_file_actions_t actions_;
};

class SpawnAttributes {
 public:
  explicit SpawnAttributes(const SpawnOptions& options) {
    posix_spawnattr_init(&attributes_);
    if (options.default_interrupt) {
      sigset_t interrupt;
      sigemptyset(&interrupt);
      sigaddset(&interrupt, SIGINT);
      posix_spawnattr_setsigdefault(&attributes_, &interrupt);
      posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
    }
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes_); }
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

}  // namespace

Result<Pipe> MakePipe() {
  std::array<int, 2> ends = {};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return SystemError(errno, "cannot make a pipe");
  }
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

Result<std::string> FindProgram(const std::string& name) {
  return FindProgramIn(getenv("PATH"), name);
}

Result<std::string> FindProgramIn(const char* path, const std::string& name) {
  if (name.find('/') != name.npos) {
    if (IsProgram(name)) {
      return name;
    }
    return InvalidArgument("{:?} is no executable file", name);
  }
  std::string_view rest = path == nullptr ? "/usr/bin:/bin" : path;
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    std::string place = std::string(rest.substr(0, colon)) + "/" + name;
    if (colon != 0 && IsProgram(place)) {
      return place;
    }
    rest = colon == rest.npos ? "" : rest.substr(colon + 1);
  }
  return InvalidArgument("no program {:?} in PATH", name);
}

IgnoreInterrupt::IgnoreInterrupt() {
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGINT, &ignore, &before_);
}

void IgnoreInterrupt::RestoreInChild() const {
  sigaction(SIGINT, &before_, nullptr);
}

Result<pid_t> SpawnProgram(const std::vector<std::string>& arguments,
                           const SpawnOptions& options) {
  CLEW_CHECK(!arguments.empty(), "no program");
  const std::vector<char*> argv = ExecArguments(arguments);
  const SpawnActions actions(options);
  const SpawnAttributes attributes(options);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], actions.get(), attributes.get(),
                                 argv.data(), environ);
  if (error != 0) {
    return SystemError(error, options.failure.empty()
                                  ? fmt::format("cannot run {:?}", arguments[0])
                                  : options.failure);
  }
  return pid;
}

Result<int> WaitForChild(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) {
      return SystemError(errno, fmt::format("cannot wait for child {}", child));
    }
  }
  return status;
}

int ExitStatusOf(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status)
                                  : WEXITSTATUS(wait_status);
}

bool DieWithParent(pid_t parent) {
  return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
}

bool SetLimit(__rlimit_resource resource, uint64_t soft, uint64_t hard) {
  rlimit limit = {};
  if (getrlimit(resource, &limit) != 0) {
    return false;
  }
  limit.rlim_cur = std::min<rlim_t>(soft, limit.rlim_max);
  limit.rlim_max = std::min<rlim_t>(hard, limit.rlim_max);
  return setrlimit(resource, &limit) == 0;
}

}  // namespace clew
