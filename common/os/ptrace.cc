#include "common/os/ptrace.h"

#include <sched.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <sstream>
#include <utility>

#include "common/os/exec_arguments.h"
#include "common/os/process_state.h"
#include "common/x86/page.h"

namespace clew {
namespace {

constexpr int kExecFailed = 127;

Status BindToCpu(int32_t process, int host_cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<size_t>(host_cpu), &cpus);
  if (sched_setaffinity(process, sizeof cpus, &cpus) != 0) {
    return SystemError(
        errno, fmt::format("cannot bind {} to CPU {}", process, host_cpu));
  }
  return {};
}

// In the child, which must only call what is safe after fork.
[[noreturn]] void BecomeTracee(char** arguments, char** environment) {
  setpgid(0, 0);  // so that the destructor can wait for all its threads
  personality(ADDR_NO_RANDOMIZE);
  ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
  raise(SIGSTOP);
  execve(arguments[0], arguments, environment);
  _exit(kExecFailed);
}

Status Request(__ptrace_request request, Tid thread, uint64_t data,
               std::string_view what) {
  if (ptrace(request, thread.as_int(), nullptr, data) != 0) {
    return SystemError(errno, fmt::format("cannot {} thread {}", what, thread));
  }
  return {};
}

Result<TraceeStop> Interpret(Tid thread, int status) {
  TraceeStop stop;
  if (WIFEXITED(status)) {
    stop.kind = TraceeStop::Kind::kExited;
    stop.exit_status = WEXITSTATUS(status);
  } else if (WIFSIGNALED(status)) {
    stop.kind = TraceeStop::Kind::kKilled;
    stop.signal = WTERMSIG(status);
  } else if (status >> 16 == PTRACE_EVENT_CLONE) {
    unsigned long child = 0;
    if (ptrace(PTRACE_GETEVENTMSG, thread.as_int(), nullptr, &child) != 0) {
      return SystemError(errno, "cannot learn the number of a new thread");
    }
    stop.kind = TraceeStop::Kind::kClone;
    stop.new_thread = Tid(static_cast<int32_t>(child));
  } else if (WSTOPSIG(status) == SIGTRAP) {
    stop.kind = TraceeStop::Kind::kTrap;
  } else {
    stop.kind = TraceeStop::Kind::kSignal;
    stop.signal = WSTOPSIG(status);
  }
  return stop;
}

}  // namespace

Result<TracedProcess> TracedProcess::Start(
    const std::vector<std::string>& command,
    const std::vector<std::string>& environment, int host_cpu) {
  if (command.empty()) {
    return InvalidArgument("no program to trace");
  }
  CLEW_RETURN_IF_ERROR(BindToCpu(0, host_cpu));
  const std::vector<char*> arguments = ExecArguments(command);
  const std::vector<char*> variables = ExecArguments(environment);
  const int32_t child = fork();
  if (child < 0) {
    return SystemError(errno, "cannot fork");
  }
  if (child == 0) {
    BecomeTracee(const_cast<char**>(arguments.data()),
                 const_cast<char**>(variables.data()));
  }
  TracedProcess process(child);
  CLEW_RETURN_IF_ERROR(process.FinishExec(command[0]));
  return process;
}

// From the child's SIGSTOP to the first instruction of its new program. Linux
// lets the first step after PTRACE_EVENT_EXEC end in the system call.
Status TracedProcess::FinishExec(const std::string& name) {
  const Tid thread = first_thread();
  CLEW_RETURN_IF_ERROR(Wait(thread, true));
  constexpr uint64_t kOptions =
      PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
  CLEW_RETURN_IF_ERROR(
      Request(PTRACE_SETOPTIONS, thread, kOptions, "set options of"));
  CLEW_RETURN_IF_ERROR(Request(PTRACE_CONT, thread, 0, "start"));
  CLEW_ASSIGN_OR_RETURN(exec_stop, Wait(thread, true));
  if (exec_stop.kind != TraceeStop::Kind::kTrap) {
    process_ = exec_stop.kind == TraceeStop::Kind::kExited ? 0 : process_;
    return InvalidArgument("cannot execute {:?}", name);
  }
  CLEW_RETURN_IF_ERROR(SingleStep(thread, 0));
  CLEW_RETURN_IF_ERROR(Wait(thread, true));
  return {};
}

TracedProcess::TracedProcess(TracedProcess&& other) noexcept
    : process_(std::exchange(other.process_, 0)) {}

TracedProcess& TracedProcess::operator=(TracedProcess&& other) noexcept {
  std::swap(process_, other.process_);
  return *this;
}

TracedProcess::~TracedProcess() {
  if (process_ == 0) {
    return;
  }
  kill(process_, SIGKILL);
  // The kernel keeps the process until each of its threads is reaped.
  while (waitpid(-process_, nullptr, __WALL) > 0 || errno == EINTR) {
  }
}

Status TracedProcess::SingleStep(Tid thread, int signal) {
  return Request(PTRACE_SINGLESTEP, thread, static_cast<uint64_t>(signal),
                 "step");
}

Result<TraceeStop> TracedProcess::Wait(Tid thread, bool may_block) {
  for (;;) {
    int status = 0;
    const int32_t stopped =
        waitpid(thread.as_int(), &status, __WALL | (may_block ? 0 : WNOHANG));
    if (stopped > 0) {
      return Interpret(thread, status);
    }
    if (stopped == 0) {
      return TraceeStop();
    }
    if (errno != EINTR) {
      return SystemError(errno,
                         fmt::format("cannot wait for thread {}", thread));
    }
  }
}

bool TracedProcess::IsAsleep(Tid thread) const {
  const char state =
      ProcessState(fmt::format("/proc/{}/task/{}/stat", process_, thread));
  return state == 'S' || state == 'D' || state == 'Z';
}

Result<user_regs_struct> TracedProcess::Registers(Tid thread) const {
  user_regs_struct registers = {};
  if (ptrace(PTRACE_GETREGS, thread.as_int(), nullptr, &registers) != 0) {
    return SystemError(
        errno, fmt::format("cannot read registers of thread {}", thread));
  }
  return registers;
}

Result<TraceeAddr> TracedProcess::InsnPointer(Tid thread) const {
  errno = 0;
  const long value = ptrace(PTRACE_PEEKUSER, thread.as_int(),
                            offsetof(user_regs_struct, rip), nullptr);
  if (errno != 0) {
    return SystemError(
        errno, fmt::format("cannot read registers of thread {}", thread));
  }
  return TraceeAddr(static_cast<uint64_t>(value));
}

size_t TracedProcess::ReadMemory(TraceeAddr addr,
                                 std::span<uint8_t> bytes) const {
  // Page by page, because a transfer stops before a part that is not mapped.
  size_t done = 0;
  while (done < bytes.size()) {
    const uint64_t from = addr.as_int() + done;
    const size_t count =
        std::min<size_t>(bytes.size() - done, kPageBytes - from % kPageBytes);
    iovec local = {bytes.data() + done, count};
    iovec remote = {reinterpret_cast<void*>(from), count};
    const ssize_t got = process_vm_readv(process_, &local, 1, &remote, 1, 0);
    if (got <= 0) {
      break;
    }
    done += static_cast<size_t>(got);
  }
  return done;
}

std::string TracedProcess::Maps() const {
  std::ifstream file(fmt::format("/proc/{}/maps", process_));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace clew
