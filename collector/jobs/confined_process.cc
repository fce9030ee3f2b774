#include "collector/jobs/confined_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <string>
#include <vector>

#include "common/check.h"
#include "common/os/child_process.h"
#include "common/os/confinement.h"
#include "common/os/exec_arguments.h"

namespace clew::collector {
namespace {

constexpr int kNice = 10;
// Our descriptors are above those that a program expects to find open.
constexpr int kFirstOwnFd = 10;
constexpr int kFailureFd = 3;  // of the child, until exec

Result<Fd> MoveUp(Fd fd) {
  Fd high(fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstOwnFd));
  if (high.get() < 0) {
    return SystemError(errno, "cannot duplicate a descriptor");
  }
  return high;
}

Result<Pipe> MakeHighPipe() {
  CLEW_ASSIGN_OR_RETURN(low, MakePipe());
  CLEW_ASSIGN_OR_RETURN(read, MoveUp(std::move(low.read_end)));
  CLEW_ASSIGN_OR_RETURN(write, MoveUp(std::move(low.write_end)));
  return Pipe{std::move(read), std::move(write)};
}

// ---- The child, between fork and exec: only async-signal-safe calls.

// What the child needs, made before the fork.
struct Launch {
  const ConfinedChildRequest& request;
  const Confinement& confinement;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  int null_fd;
  int output_fd;
  int error_fd;
  int failure_fd;
  pid_t parent;
};

bool SetLimits(const ConfinedChildLimits& limits) {
  return SetLimit(RLIMIT_CPU, limits.cpu_s, limits.cpu_s + 1) &&
         SetLimit(RLIMIT_DATA, limits.memory_bytes, limits.memory_bytes) &&
         SetLimit(RLIMIT_AS, limits.address_bytes, limits.address_bytes) &&
         SetLimit(RLIMIT_FSIZE, limits.file_bytes, limits.file_bytes) &&
         SetLimit(RLIMIT_NOFILE, limits.open_files, limits.open_files) &&
         SetLimit(RLIMIT_NPROC, limits.processes, limits.processes) &&
         SetLimit(RLIMIT_MEMLOCK, 0, 0) && SetLimit(RLIMIT_MSGQUEUE, 0, 0) &&
         SetLimit(RLIMIT_CORE, 0, 0);
}

// A program must find signals as a shell would leave them, not as gRPC does.
bool ResetSignals() {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) {
    (void)sigaction(number, &action, nullptr);  // SIGKILL's cannot be set
  }
  sigset_t none;
  sigemptyset(&none);
  return sigprocmask(SIG_SETMASK, &none, nullptr) == 0;
}

bool SetDescriptors(const Launch& launch) {
  return dup2(launch.null_fd, STDIN_FILENO) >= 0 &&
         dup2(launch.output_fd, STDOUT_FILENO) >= 0 &&
         dup2(launch.error_fd, STDERR_FILENO) >= 0 &&
         dup3(launch.failure_fd, kFailureFd, O_CLOEXEC) >= 0;
}

bool CloseRange(int first, int last) {
  return first > last || syscall(SYS_close_range, first, last, 0) == 0;
}

// All but what SetDescriptors made and `kept` (-1: none), which exec closes.
// Early: among them are the lock and the ports of a collector that may be
// killed and started again meanwhile.
bool CloseOthers(int kept) {
  constexpr int kLast = std::numeric_limits<int>::max();
  return CloseRange(kFailureFd + 1, kept - 1) &&
         CloseRange(std::max(kFailureFd, kept) + 1, kLast);
}

// The steps by name, as RunConfinedChild's message has them.
constexpr std::array<const char*, 8> kSteps = {
    "new session", "parent's death", "signals",     "current folder",
    "descriptors", "limits",         "confinement", "exec"};

[[noreturn]] void Fail(uint8_t step, int error) {
  const std::array<int, 2> failure = {step, error};
  (void)!write(kFailureFd, failure.data(), sizeof(failure));
  _exit(127);
}

[[noreturn]] void BecomeChild(const Launch& launch) {
  const ConfinedChildRequest& request = launch.request;
  // First, since Fail writes there.
  if (!SetDescriptors(launch)) {
    _exit(127);
  }
  if (!CloseOthers(launch.confinement.ruleset_fd())) {
    Fail(4, errno);
  }
  if (setsid() < 0) {
    Fail(0, errno);
  }
  if (!DieWithParent(launch.parent)) {
    Fail(1, errno);
  }
  if (!ResetSignals()) {
    Fail(2, errno);
  }
  umask(077);
  if (chdir(request.folder.c_str()) != 0) {
    Fail(3, errno);
  }
  // Where it is refused, the priority stays as it is.
  (void)setpriority(PRIO_PROCESS, 0, kNice);
  if (const int error = launch.confinement.Enter(); error != 0) {
    Fail(6, error);
  }
  if (!SetLimits(request.limits)) {
    Fail(5, errno);
  }
  execve(launch.arguments[0], launch.arguments.data(),
         launch.environment.data());
  Fail(7, errno);
}

// ---- The collector.

// What the child could not do before exec.
Status ReadFailure(int fd, const ConfinedChildRequest& request) {
  std::array<int, 2> failure = {};
  ssize_t size = 0;
  do {
    size = read(fd, failure.data(), sizeof(failure));
  } while (size < 0 && errno == EINTR);
  if (size != sizeof(failure)) {
    return {};  // closed by exec; or it died, which its status tells
  }
  return SystemError(failure[1],
                     fmt::format("cannot start {} ({})", request.arguments[0],
                                 kSteps.at(static_cast<size_t>(failure[0]))));
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_usec) * 1e-6;
}

struct Streams {
  Pipe output;
  Pipe errors;
  Pipe failure;
};

Result<Streams> MakeStreams() {
  CLEW_ASSIGN_OR_RETURN(output, MakeHighPipe());
  CLEW_ASSIGN_OR_RETURN(errors, MakeHighPipe());
  CLEW_ASSIGN_OR_RETURN(failure, MakeHighPipe());
  return Streams{std::move(output), std::move(errors), std::move(failure)};
}

// The child's number; it has the ends of `streams` that are written to.
Result<pid_t> Fork(const ConfinedChildRequest& request,
                   const Confinement& confinement, const Streams& streams) {
  Fd null_fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (null_fd.get() < 0) {
    return SystemError(errno, "cannot open /dev/null");
  }
  CLEW_ASSIGN_OR_RETURN(null_high, MoveUp(std::move(null_fd)));
  const std::vector<std::string> environment = {
      "PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TMPDIR=" + request.folder};
  const Launch launch = {.request = request,
                         .confinement = confinement,
                         .arguments = ExecArguments(request.arguments),
                         .environment = ExecArguments(environment),
                         .null_fd = null_high.get(),
                         .output_fd = streams.output.write_end.get(),
                         .error_fd = streams.errors.write_end.get(),
                         .failure_fd = streams.failure.write_end.get(),
                         .parent = getpid()};
  const pid_t pid = fork();
  if (pid < 0) {
    return SystemError(errno, "cannot start a process");
  }
  if (pid == 0) {
    BecomeChild(launch);
  }
  return pid;
}

}  // namespace

Result<ConfinedProcess> ConfinedProcess::Start(
    const ConfinedChildRequest& request) {
  CLEW_CHECK(!request.arguments.empty(), "no program");
  CLEW_ASSIGN_OR_RETURN(
      confinement, Confinement::Make({.program = request.arguments[0],
                                      .folder = request.folder,
                                      .may_fork = request.may_fork,
                                      .readable = request.readable,
                                      .may_connect = request.may_connect}));
  CLEW_ASSIGN_OR_RETURN(streams, MakeStreams());
  CLEW_ASSIGN_OR_RETURN(pid, Fork(request, confinement, streams));
  ConfinedProcess process(pid);
  process.pid_fd_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (process.pid_fd() < 0) {
    return SystemError(errno, "cannot wait for a process (pidfd_open)");
  }
  for (Pipe* pipe : {&streams.output, &streams.errors, &streams.failure}) {
    pipe->write_end.Close();
  }
  CLEW_RETURN_IF_ERROR(ReadFailure(streams.failure.read_end.get(), request));
  process.output_ = std::move(streams.output.read_end);
  process.errors_ = std::move(streams.errors.read_end);
  return process;
}

ConfinedProcess::ConfinedProcess(ConfinedProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pid_fd_(std::move(other.pid_fd_)),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)) {}

ConfinedProcess::~ConfinedProcess() {
  if (pid_ > 0) {
    (void)End();
  }
}

// Its number cannot be somebody else's before it is reaped.
ConfinedProcess::Ending ConfinedProcess::End() {
  kill(-pid_, SIGKILL);  // its session, if it got that far
  kill(pid_, SIGKILL);
  int status = 0;
  rusage usage = {};
  while (wait4(pid_, &status, 0, &usage) < 0) {
    CLEW_CHECK(errno == EINTR, "child {} is not ours: errno {}", pid_, errno);
  }
  pid_ = -1;
  return {.status = status,
          .cpu_seconds = Seconds(usage.ru_utime) + Seconds(usage.ru_stime)};
}

}  // namespace clew::collector
