#include "recorder/perf_target.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "common/os/child_process.h"
#include "common/os/exec_arguments.h"

namespace clew::recorder {
namespace {

namespace fs = std::filesystem;

constexpr int kExecFailed = 127;
constexpr int kCgroupDepthMax = 8;
constexpr size_t kCgroupsMax = 100'000;

// In the child, between fork and exec: nothing may allocate here.
[[noreturn]] void WaitAndExec(int go, const char* path, char* const* arguments,
                              pid_t parent) {
  if (!DieWithParent(parent)) {
    _exit(kExecFailed);
  }
  rlimit cores = {};
  getrlimit(RLIMIT_CORE, &cores);
  cores.rlim_cur = cores.rlim_max;
  setrlimit(RLIMIT_CORE, &cores);
  char byte = 0;
  ssize_t got = 0;
  do {
    got = read(go, &byte, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 1) {
    execv(path, arguments);
  }
  _exit(kExecFailed);
}

}  // namespace

Result<HeldProgram> HeldProgram::Start(
    const std::vector<std::string>& command) {
  CLEW_ASSIGN_OR_RETURN(path, FindProgram(command.at(0)));
  const std::vector<char*> arguments = ExecArguments(command);
  CLEW_ASSIGN_OR_RETURN(go, MakePipe());
  HeldProgram program;
  program.go_ = std::move(go.write_end);
  program.ignore_ = std::make_unique<IgnoreInterrupt>();
  const pid_t parent = getpid();
  program.process_ = fork();
  if (program.process_ == 0) {
    close(program.go_.get());
    program.ignore_->RestoreInChild();
    WaitAndExec(go.read_end.get(), path.c_str(), arguments.data(), parent);
  }
  if (program.process_ < 0) {
    return SystemError(errno, "cannot start a process");
  }
  CLEW_ASSIGN_OR_RETURN(ended, EndOfProcess(program.process_));
  program.ended_ = std::move(ended);
  return program;
}

HeldProgram::HeldProgram(HeldProgram&& other) noexcept
    : process_(std::exchange(other.process_, -1)),
      seen_status_(other.seen_status_),
      go_(std::move(other.go_)),
      ended_(std::move(other.ended_)),
      ignore_(std::move(other.ignore_)) {}

HeldProgram::~HeldProgram() {
  if (process_ > 0 && !seen_status_) {
    Kill(SIGKILL);
    (void)waitpid(process_, nullptr, 0);
  }
}

void HeldProgram::Go() {
  // If the child is gone, its status tells.
  (void)!write(go_.get(), "g", 1);
  go_ = Fd();
}

Result<std::optional<int>> HeldProgram::TryWait() {
  int status = seen_status_.value_or(0);
  const pid_t got =
      seen_status_ ? process_ : waitpid(process_, &status, WNOHANG);
  if (got == 0 || (got < 0 && errno == EINTR)) {
    return std::optional<int>();
  }
  if (got < 0) {
    return SystemError(errno, "cannot wait for the program");
  }
  process_ = -1;
  ignore_.reset();
  return std::optional(status);
}

void HeldProgram::Kill(int signal) const { kill(process_, signal); }

Result<Fd> EndOfProcess(int32_t process) {
  const long fd = syscall(SYS_pidfd_open, process, 0);
  if (fd < 0 && (errno == ESRCH || errno == EINVAL)) {
    return InvalidArgument("there is no process {}; 'ps -e' lists them",
                           process);
  }
  if (fd < 0) {
    return SystemError(errno, fmt::format("cannot open process {}", process));
  }
  return Fd(static_cast<int>(fd));
}

bool HasEnded(const Fd& process_end) {
  pollfd wanted = {.fd = process_end.get(), .events = POLLIN, .revents = 0};
  return poll(&wanted, 1, 0) == 1;
}

Result<std::string> CgroupOfUnit(const std::string& cgroups,
                                 const std::string& unit) {
  if (unit.empty() || unit.find('/') != std::string::npos) {
    return InvalidArgument(
        "{:?} is no name of a unit; wanted one like "
        "\"nginx.service\"",
        unit);
  }
  std::error_code error;
  size_t seen = 0;
  for (const std::string& root : {cgroups + "/unified", cgroups}) {
    fs::recursive_directory_iterator it(
        root, fs::directory_options::skip_permission_denied, error);
    for (; !error && it != fs::recursive_directory_iterator() &&
           seen < kCgroupsMax;
         it.increment(error), ++seen) {
      if (it->path().filename() == unit && it->is_directory(error)) {
        return it->path().string();
      }
      if (it.depth() >= kCgroupDepthMax || it->is_symlink(error)) {
        it.disable_recursion_pending();
      }
    }
    error.clear();
  }
  return InvalidArgument(
      "no unit {:?} runs here: no folder of that name below {}; 'systemctl "
      "status {}' tells more, --cgroup takes a folder",
      unit, cgroups, unit);
}

std::vector<int32_t> ProcessesOfCgroup(const std::string& folder) {
  std::vector<int32_t> processes;
  const auto add = [&processes](const std::string& path) {
    std::ifstream file(path + "/cgroup.procs");
    for (int32_t process = 0; file >> process;) {
      processes.push_back(process);
    }
  };
  add(folder);
  std::error_code error;
  fs::recursive_directory_iterator it(folder, error);
  for (size_t seen = 0;
       !error && it != fs::recursive_directory_iterator() && seen < kCgroupsMax;
       it.increment(error), ++seen) {
    if (it->is_directory(error)) {
      add(it->path().string());
    }
  }
  std::ranges::sort(processes);
  return processes;
}

Result<int32_t> ProcessOfUnit(const std::string& cgroups,
                              const std::string& unit) {
  CLEW_ASSIGN_OR_RETURN(folder, CgroupOfUnit(cgroups, unit));
  const std::vector<int32_t> processes = ProcessesOfCgroup(folder);
  if (processes.empty()) {
    return InvalidArgument("the unit {:?} has no process now", unit);
  }
  if (processes.size() > 1) {
    constexpr size_t kNamedMax = 8;
    const size_t named = std::min(processes.size(), kNamedMax);
    return InvalidArgument(
        "the unit {:?} has {} processes ({}{}), wanted one: give it with --pid",
        unit, processes.size(),
        fmt::join(processes.begin(),
                  processes.begin() + static_cast<ptrdiff_t>(named), ", "),
        named < processes.size() ? ", ..." : "");
  }
  return processes.front();
}

}  // namespace clew::recorder
