#include "collector/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <utility>

#include "collector/confinement.h"
#include "common/check.h"

namespace clew::collector {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kErrorTailBytes = 4096;
constexpr int kNice = 10;
constexpr int kLastWords_ms = 2000;
// Descriptors of ours are above those that a program finds open.
constexpr int kFirstOwnFd = 10;
constexpr int kFailureFd = 3;  // of the child, until exec

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    Close();
    fd_ = std::exchange(other.fd_, -1);
    return *this;
  }
  ~Fd() { Close(); }
  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) {
      close(std::exchange(fd_, -1));
    }
  }

 private:
  int fd_ = -1;
};

Result<Fd> MoveUp(Fd fd) {
  Fd high(fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstOwnFd));
  if (high.get() < 0) {
    return SystemError(errno, "cannot duplicate a descriptor");
  }
  return high;
}

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> MakePipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) {
    return SystemError(errno, "cannot make a pipe");
  }
  Fd read_end(fds[0]);
  Fd write_end(fds[1]);
  CLEW_ASSIGN_OR_RETURN(read, MoveUp(std::move(read_end)));
  CLEW_ASSIGN_OR_RETURN(write, MoveUp(std::move(write_end)));
  return Pipe{std::move(read), std::move(write)};
}

// ---- The child, between fork and exec: only async-signal-safe calls.

// What the child needs, made before the fork.
struct Launch {
  const ChildRequest& request;
  const Confinement& confinement;
  std::vector<char*> arguments;
  std::vector<char*> environment;
  int null_fd;
  int output_fd;
  int error_fd;
  int failure_fd;
  pid_t parent;
};

bool SetLimit(__rlimit_resource resource, uint64_t soft, uint64_t hard) {
  const rlimit limit = {soft, hard};
  return setrlimit(resource, &limit) == 0;
}

bool SetLimits(const ChildLimits& limits) {
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

// Dies with its parent, which may be gone already.
bool DieWithParent(pid_t parent) {
  return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == parent;
}

bool CloseOthers() {
  return syscall(SYS_close_range, kFailureFd + 1, ~0U, 0) == 0;
}

// The steps by name, as RunChild's message has them.
constexpr std::array<const char*, 8> kSteps = {
    "new session", "parent's death", "signals",     "current folder",
    "descriptors", "limits",         "confinement", "exec"};

[[noreturn]] void Fail(uint8_t step, int error) {
  const std::array<int, 2> failure = {step, error};
  (void)!write(kFailureFd, failure.data(), sizeof(failure));
  _exit(127);
}

[[noreturn]] void BecomeChild(const Launch& launch) {
  const ChildRequest& request = launch.request;
  // First, since Fail writes there.
  if (!SetDescriptors(launch)) {
    _exit(127);
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
  if (!CloseOthers()) {
    Fail(4, errno);
  }
  if (!SetLimits(request.limits)) {
    Fail(5, errno);
  }
  execve(launch.arguments[0], launch.arguments.data(),
         launch.environment.data());
  Fail(7, errno);
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) {
    pointers.push_back(text.data());
  }
  pointers.push_back(nullptr);
  return pointers;
}

// ---- The collector.

// A process that was started, killed with its session and reaped for certain.
class Process {
 public:
  explicit Process(pid_t pid) : pid_(pid) {}
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Process& operator=(Process&&) = delete;
  ~Process() {
    if (pid_ > 0) {
      (void)End();
    }
  }
  pid_t pid() const { return pid_; }

  void Kill() const {
    kill(-pid_, SIGKILL);  // its session, if it got that far
    kill(pid_, SIGKILL);
  }

  struct Ending {
    int status = 0;
    rusage usage = {};
  };
  // As it ended by itself, or as killed here; the rest of its session with it.
  // The number cannot be somebody else's before it is reaped.
  Ending End() {
    Kill();
    Ending ending;
    while (wait4(pid_, &ending.status, 0, &ending.usage) < 0) {
      CLEW_CHECK(errno == EINTR, "child {} is not ours: errno {}", pid_, errno);
    }
    pid_ = -1;
    return ending;
  }

 private:
  pid_t pid_;
};

// Reads what is there. False: the end.
bool Drain(int fd, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t size = read(fd, buffer.data(), buffer.size());
  if (size > 0) {
    text.append(buffer.data(), static_cast<size_t>(size));
  }
  return size > 0 || (size < 0 && (errno == EINTR || errno == EAGAIN));
}

std::string LastLine(std::string text) {
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  return text.substr(text.rfind('\n') + 1);
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_usec) * 1e-6;
}

// Waits for a child and collects what it says.
class Watch {
 public:
  Watch(const ChildRequest& request, Fd pid_fd, Fd output, Fd error)
      : request_(request),
        pid_fd_(std::move(pid_fd)),
        output_(std::move(output)),
        error_(std::move(error)),
        begin_(Clock::now()) {}

  // Until it ended, or has to be ended.
  void UntilEnd(ChildOutcome& outcome) {
    while (!ended_ && outcome.end == ChildEnd::kExited) {
      Step(outcome);
    }
    outcome.seconds = Elapsed();
  }
  // What is still in the pipes. REQUIRES: whoever writes to them was killed.
  void TakeRest(ChildOutcome& outcome) {
    while (outcome.end == ChildEnd::kExited && HasMore(output_)) {
      TakeOutput(outcome);
    }
    while (HasMore(error_)) {
      TakeError();
    }
    outcome.last_error = LastLine(error_tail_);
  }
  const std::string& error_tail() const { return error_tail_; }

 private:
  double Elapsed() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }

  void Step(ChildOutcome& outcome) {
    const double left_s = request_.limits.wall_s - Elapsed();
    if (left_s <= 0) {
      return Limit(outcome, fmt::format("wall-clock limit of {:g} s",
                                        request_.limits.wall_s));
    }
    // poll() passes over descriptors below 0.
    std::array<pollfd, 4> fds = {{{pid_fd_.get(), POLLIN, 0},
                                  {output_.get(), POLLIN, 0},
                                  {error_.get(), POLLIN, 0},
                                  {request_.stop_fd, POLLIN, 0}}};
    const double wait_ms = std::min(std::ceil(left_s * 1000), 1e6);
    if (poll(fds.data(), fds.size(), static_cast<int>(wait_ms)) < 0) {
      return;  // EINTR
    }
    if (fds[1].revents != 0) {
      TakeOutput(outcome);
    }
    if (fds[2].revents != 0) {
      TakeError();
    }
    if (fds[3].revents != 0) {
      outcome.end = ChildEnd::kStopped;
    }
    ended_ = fds[0].revents != 0;
  }

  // The kernel may still be ending somebody who has the other end.
  static bool HasMore(const Fd& fd) {
    pollfd ready = {fd.get(), POLLIN, 0};
    return fd.get() >= 0 && poll(&ready, 1, kLastWords_ms) == 1;
  }

  static void Limit(ChildOutcome& outcome, std::string limit) {
    outcome.end = ChildEnd::kLimit;
    outcome.limit = std::move(limit);
  }

  void TakeOutput(ChildOutcome& outcome) {
    if (!Drain(output_.get(), outcome.output)) {
      output_.Close();
    }
    if (outcome.output.size() > request_.limits.output_bytes) {
      outcome.output.resize(request_.limits.output_bytes);
      Limit(outcome, fmt::format("output limit of {} bytes",
                                 request_.limits.output_bytes));
    }
  }

  void TakeError() {
    if (!Drain(error_.get(), error_tail_)) {
      error_.Close();
    }
    if (error_tail_.size() > kErrorTailBytes) {
      error_tail_.erase(0, error_tail_.size() - kErrorTailBytes);
    }
  }

  const ChildRequest& request_;
  Fd pid_fd_;
  Fd output_;
  Fd error_;
  const Clock::time_point begin_;
  std::string error_tail_;
  bool ended_ = false;
};

bool RanOutOfMemory(const ChildLimits& limits, const std::string& errors,
                    const rusage& usage) {
  for (const char* text :
       {"bad_alloc", "out of memory", "Cannot allocate memory"}) {
    if (errors.find(text) != std::string::npos) {
      return true;
    }
  }
  const auto peak_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  return peak_bytes > limits.memory_bytes / 8 * 7;
}

// The limit that ended it; empty: none.
std::string LimitBehind(const ChildLimits& limits, const std::string& errors,
                        const Process::Ending& ending) {
  const int signal = WIFSIGNALED(ending.status) ? WTERMSIG(ending.status) : 0;
  const double cpu_s =
      Seconds(ending.usage.ru_utime) + Seconds(ending.usage.ru_stime);
  if (signal == SIGXCPU ||
      (signal == SIGKILL && cpu_s >= static_cast<double>(limits.cpu_s))) {
    return fmt::format("CPU time limit of {} s", limits.cpu_s);
  }
  if (signal == SIGXFSZ) {
    return fmt::format("limit of {} bytes for a file", limits.file_bytes);
  }
  if (ending.status != 0 && RanOutOfMemory(limits, errors, ending.usage)) {
    return fmt::format("memory limit of {} bytes", limits.memory_bytes);
  }
  return "";
}

void SetEnd(ChildOutcome& outcome, const ChildLimits& limits,
            const std::string& errors, const Process::Ending& ending) {
  outcome.cpu_seconds =
      Seconds(ending.usage.ru_utime) + Seconds(ending.usage.ru_stime);
  if (outcome.end != ChildEnd::kExited) {
    return;
  }
  outcome.limit = LimitBehind(limits, errors, ending);
  if (!outcome.limit.empty()) {
    outcome.end = ChildEnd::kLimit;
  } else if (WIFSIGNALED(ending.status)) {
    outcome.end = ChildEnd::kSignal;
    outcome.signal = WTERMSIG(ending.status);
  } else {
    outcome.exit_status = WEXITSTATUS(ending.status);
  }
}

// What the child could not do before exec.
Status ReadFailure(int fd, const ChildRequest& request) {
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

struct Streams {
  Pipe output;
  Pipe error;
  Pipe failure;
};

Result<Process> Start(const ChildRequest& request,
                      const Confinement& confinement, Streams& streams) {
  Fd null_fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (null_fd.get() < 0) {
    return SystemError(errno, "cannot open /dev/null");
  }
  CLEW_ASSIGN_OR_RETURN(null_high, MoveUp(std::move(null_fd)));
  std::vector<std::string> arguments = request.arguments;
  std::vector<std::string> environment = {
      "PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TMPDIR=" + request.folder};
  const Launch launch = {.request = request,
                         .confinement = confinement,
                         .arguments = Pointers(arguments),
                         .environment = Pointers(environment),
                         .null_fd = null_high.get(),
                         .output_fd = streams.output.write.get(),
                         .error_fd = streams.error.write.get(),
                         .failure_fd = streams.failure.write.get(),
                         .parent = getpid()};
  const pid_t pid = fork();
  if (pid < 0) {
    return SystemError(errno, "cannot start a process");
  }
  if (pid == 0) {
    BecomeChild(launch);
  }
  streams.output.write.Close();
  streams.error.write.Close();
  streams.failure.write.Close();
  return Process(pid);
}

Result<Streams> MakeStreams() {
  CLEW_ASSIGN_OR_RETURN(output, MakePipe());
  CLEW_ASSIGN_OR_RETURN(error, MakePipe());
  CLEW_ASSIGN_OR_RETURN(failure, MakePipe());
  return Streams{std::move(output), std::move(error), std::move(failure)};
}

}  // namespace

Result<ChildOutcome> RunChild(const ChildRequest& request) {
  CLEW_CHECK(!request.arguments.empty(), "no program");
  CLEW_ASSIGN_OR_RETURN(confinement,
                        Confinement::Make(request.arguments[0], request.folder,
                                          request.may_fork));
  CLEW_ASSIGN_OR_RETURN(streams, MakeStreams());
  CLEW_ASSIGN_OR_RETURN(process, Start(request, confinement, streams));
  Fd pid_fd(static_cast<int>(syscall(SYS_pidfd_open, process.pid(), 0)));
  if (pid_fd.get() < 0) {
    return SystemError(errno, "cannot wait for a process (pidfd_open)");
  }
  CLEW_RETURN_IF_ERROR(ReadFailure(streams.failure.read.get(), request));
  ChildOutcome outcome;
  Watch watch(request, std::move(pid_fd), std::move(streams.output.read),
              std::move(streams.error.read));
  watch.UntilEnd(outcome);
  const Process::Ending ending = process.End();
  watch.TakeRest(outcome);
  SetEnd(outcome, request.limits, watch.error_tail(), ending);
  return outcome;
}

}  // namespace clew::collector
