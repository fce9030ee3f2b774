#include "common/os/ptrace.h"

#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "common/linux/syscall_result.h"
#include "common/os/exec_arguments.h"
#include "common/os/process_state.h"
#include "common/text/parse_number.h"

namespace clew {
namespace {

// With which a child ends that cannot be traced, or not execute its program.
constexpr int kTraceRefused = 126;
constexpr int kExecFailed = 127;

// SYSCALL as a number. Source: Intel SDM, volume 2.
constexpr uint16_t kSyscallInsn = 0x050f;

// What a traced thread stops at, besides steps and signals.
constexpr uint64_t kTraced = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                             PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC;

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
[[noreturn]] void BecomeTracee(const TraceeLaunch& launch, char** arguments,
                               char** environment) {
  personality(ADDR_NO_RANDOMIZE);
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
    _exit(kTraceRefused);
  }
  raise(SIGSTOP);
  if (!launch.prepare || launch.prepare()) {
    execve(launch.program.c_str(), arguments, environment);
  }
  _exit(kExecFailed);
}

void Reap(int32_t thread) {
  int status = 0;
  for (;;) {
    const int32_t reaped = waitpid(thread, &status, __WALL);
    const bool ended =
        reaped > 0 ? !WIFSTOPPED(status) : reaped == 0 || errno != EINTR;
    if (ended) {
      return;
    }
  }
}

// What waitpid will tell of a thread, which stays to be told: si_code is 0 for
// nothing.
siginfo_t PeekAtWait(int32_t thread) {
  siginfo_t info = {};
  (void)waitid(P_PID, static_cast<id_t>(thread), &info,
               WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL);
  return info;
}

bool HasEnded(int32_t thread) {
  const int code = PeekAtWait(thread).si_code;
  return code == CLD_EXITED || code == CLD_KILLED || code == CLD_DUMPED;
}

// Its signal, and a ptrace event above it; 0: it has not stopped.
constexpr int kExecStop = SIGTRAP | PTRACE_EVENT_EXEC << 8;
int NextStop(int32_t thread) {
  const siginfo_t info = PeekAtWait(thread);
  return info.si_code == CLD_TRAPPED || info.si_code == CLD_STOPPED
             ? info.si_status
             : 0;
}

Status Request(__ptrace_request request, Tid thread, uint64_t data,
               std::string_view what) {
  if (ptrace(request, thread.as_int(), nullptr, data) != 0) {
    return SystemError(errno, fmt::format("cannot {} thread {}", what, thread));
  }
  return {};
}

// Not by a step. Source: asm-generic/siginfo.h, SIGTRAP si_codes.
bool IsSentTrap(Tid thread) {
  siginfo_t info = {};
  return ptrace(PTRACE_GETSIGINFO, thread.as_int(), nullptr, &info) == 0 &&
         info.si_code != TRAP_TRACE && info.si_code != TRAP_BRKPT &&
         info.si_code != SIGTRAP;
}

bool HasEnded(int32_t process, Tid thread) {
  const char state =
      ProcessState(fmt::format("/proc/{}/task/{}/stat", process, thread));
  return state == '\0' || state == 'Z' || state == 'X';
}

// Its threads, also those that have ended and nobody has waited for.
std::vector<int32_t> TasksOf(int32_t process) {
  std::vector<int32_t> tasks;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(
           fmt::format("/proc/{}/task", process), error)) {
    tasks.push_back(std::stoi(entry.path().filename().string()));
  }
  return tasks;
}

// Of a file of procfs, which does not say how long it is; empty if it is not
// there.
std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// How many filters of system calls /proc/PID/status tells of.
uint64_t FilterCount(std::string_view status) {
  constexpr std::string_view kField = "\nSeccomp_filters:\t";
  const size_t at = status.find(kField);
  if (at == status.npos) {  // before Linux 5.9
    return status.contains("\nSeccomp:\t2") ? 1 : 0;
  }
  status.remove_prefix(at + kField.size());
  return ParseNumber<uint64_t>(status.substr(0, status.find('\n'))).value_or(0);
}

// One that a traced thread made is traced from its beginning.
bool IsTracedByUs(int32_t process, Tid thread) {
  std::ifstream file(fmt::format("/proc/{}/task/{}/status", process, thread));
  constexpr std::string_view kField = "TracerPid:";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kField)) {
      return std::atoi(line.c_str() + kField.size()) == getpid();
    }
  }
  return false;
}

// Whether what a traced process made is a thread of its own.
bool IsThreadOf(int32_t process, Tid thread) {
  return ProcessState(fmt::format("/proc/{}/task/{}/stat", process, thread)) !=
         '\0';
}

Result<TraceeStop> Interpret(int32_t process, Tid thread, int status,
                             bool tell_traps) {
  TraceeStop stop;
  if (WIFEXITED(status)) {
    stop.kind = TraceeStop::Kind::kExited;
    stop.exit_status = WEXITSTATUS(status);
  } else if (WIFSIGNALED(status)) {
    stop.kind = TraceeStop::Kind::kKilled;
    stop.signal = WTERMSIG(status);
  } else if (status >> 16 == PTRACE_EVENT_CLONE ||
             status >> 16 == PTRACE_EVENT_FORK ||
             status >> 16 == PTRACE_EVENT_VFORK) {
    unsigned long child = 0;
    if (ptrace(PTRACE_GETEVENTMSG, thread.as_int(), nullptr, &child) != 0) {
      return SystemError(errno, "cannot learn the number of a new thread");
    }
    stop.new_thread = Tid(static_cast<int32_t>(child));
    stop.kind = IsThreadOf(process, stop.new_thread) ? TraceeStop::Kind::kClone
                                                     : TraceeStop::Kind::kFork;
  } else if (status >> 16 == PTRACE_EVENT_EXEC) {
    stop.kind = TraceeStop::Kind::kExec;
  } else if (status >> 16 == PTRACE_EVENT_STOP) {
    stop.kind = TraceeStop::Kind::kTrap;
    stop.is_without_signal = true;
  } else if (WSTOPSIG(status) == SIGTRAP &&
             !(tell_traps && IsSentTrap(thread))) {
    stop.kind = TraceeStop::Kind::kTrap;
  } else {
    stop.kind = TraceeStop::Kind::kSignal;
    stop.signal = WSTOPSIG(status);
  }
  return stop;
}

}  // namespace

Result<TracedProcess> TracedProcess::Start(const TraceeLaunch& launch) {
  if (launch.host_cpu) {
    CLEW_RETURN_IF_ERROR(BindToCpu(0, *launch.host_cpu));
  }
  const std::vector<char*> arguments = ExecArguments(launch.arguments);
  const std::vector<char*> variables = ExecArguments(launch.environment);
  const int32_t child = fork();
  if (child < 0) {
    return SystemError(errno, "cannot fork");
  }
  if (child == 0) {
    BecomeTracee(launch, const_cast<char**>(arguments.data()),
                 const_cast<char**>(variables.data()));
  }
  TracedProcess process(child, launch.tell_traps, false);
  process.threads_ = {child};
  CLEW_RETURN_IF_ERROR(process.FinishExec(launch.program));
  return process;
}

Result<TracedProcess> TracedProcess::Attach(int32_t process) {
  const char state = ProcessState(fmt::format("/proc/{}/stat", process));
  if (state == 'T' || state == 't' || state == 'Z' || state == '\0') {
    return InvalidArgument("cannot attach to process {}: {}", process,
                           state == 'T'
                               ? "it is stopped; 'kill -CONT' lets it go on"
                           : state == 't' ? "another program traces it"
                           : state == 'Z' ? "its first thread has ended"
                                          : "there is no such process");
  }
  TracedProcess attached(process, true, true);
  CLEW_RETURN_IF_ERROR(attached.StopAll());
  CLEW_RETURN_IF_ERROR(attached.LookAtFilters());
  return attached;
}

// As long as one is not stopped, it may make others: those that it makes once
// it is traced stop by themselves. A signal that is ignored, as that of a
// child's end, is dropped no longer once the thread that it is sent to is
// traced, and interrupts another one's call where that is stopped: so all are
// traced before any is stopped, and the first one, to which most are sent, is
// stopped last.
Status TracedProcess::StopAll() {
  std::set<int32_t> seen;
  const auto take_new = [&](auto take) -> Result<bool> {
    bool found = false;
    for (const int32_t thread : TasksOf(process_)) {
      if (seen.insert(thread).second) {
        CLEW_RETURN_IF_ERROR(take(Tid(thread)));
        found = true;
      }
    }
    return found;
  };
  for (bool found = true; found;) {
    CLEW_ASSIGN_OR_RETURN(
        more, take_new([this](Tid thread) { return Seize(thread); }));
    found = more;
  }
  seen = {process_};
  const auto stop = [this](Tid thread) -> Status {
    CLEW_RETURN_IF_ERROR(Seize(thread));
    return threads_.contains(thread.as_int()) ? StopSeized(thread) : Status();
  };
  for (bool is_first_stopped = false;;) {
    CLEW_ASSIGN_OR_RETURN(found, take_new(stop));
    if (!found && is_first_stopped) {
      break;
    }
    if (!found) {
      CLEW_RETURN_IF_ERROR(stop(first_thread()));
      is_first_stopped = true;
    }
  }
  return threads_.contains(process_)
             ? Status()
             : InvalidArgument("cannot attach to process {}: it has ended",
                               process_);
}

// One that has ended is left out.
Status TracedProcess::Seize(Tid thread) {
  if (threads_.contains(thread.as_int())) {
    return {};
  }
  if (ptrace(PTRACE_SEIZE, thread.as_int(), nullptr, kTraced) != 0) {
    const int error = errno;
    if (HasEnded(process_, thread)) {
      return {};
    }
    if (error != EPERM || !IsTracedByUs(process_, thread)) {
      return SystemError(
          error,
          fmt::format("cannot attach to process {}; it may be another user's, "
                      "traced already, or kernel.yama.ptrace_scope forbids it",
                      process_));
    }
  }
  threads_.insert(thread.as_int());
  return {};
}

Status TracedProcess::StopSeized(Tid thread) {
  waited_in_[thread.as_int()] = ThreadText(thread, "wchan");
  CLEW_RETURN_IF_ERROR(Request(PTRACE_INTERRUPT, thread, 0, "interrupt"));
  for (;;) {
    CLEW_ASSIGN_OR_RETURN(stop, Wait(thread, true));
    if (stop.kind == TraceeStop::Kind::kTrap || stop.has_ended()) {
      return {};
    }
    if (stop.kind == TraceeStop::Kind::kFork) {
      CLEW_RETURN_IF_ERROR(Wait(stop.new_thread, true));
      CLEW_RETURN_IF_ERROR(LetGo(stop.new_thread));
    }
    // Any other stop takes back an interrupt that came before it.
    CLEW_RETURN_IF_ERROR(Request(PTRACE_INTERRUPT, thread, 0, "interrupt"));
    CLEW_RETURN_IF_ERROR(Continue(thread, stop.signal));
  }
}

// From the child's SIGSTOP to the first instruction of its new program.
Status TracedProcess::FinishExec(const std::string& name) {
  const Tid thread = first_thread();
  CLEW_ASSIGN_OR_RETURN(first, Wait(thread, true));
  if (first.kind == TraceeStop::Kind::kExited &&
      first.exit_status == kTraceRefused) {
    return SystemError(
        EPERM, fmt::format("cannot trace {:?} (ptrace(2)): a seccomp filter or "
                           "a security module forbids it; 'clew doctor' says "
                           "what to do",
                           name));
  }
  CLEW_RETURN_IF_ERROR(Request(PTRACE_SETOPTIONS, thread,
                               kTraced | PTRACE_O_EXITKILL, "set options of"));
  CLEW_RETURN_IF_ERROR(Request(PTRACE_CONT, thread, 0, "start"));
  CLEW_ASSIGN_OR_RETURN(exec_stop, Wait(thread, true));
  if (exec_stop.kind != TraceeStop::Kind::kExec) {
    return InvalidArgument("cannot execute {:?}", name);
  }
  return EnterProgram();
}

// After kExec. Linux lets the first step after PTRACE_EVENT_EXEC end in the
// system call.
Status TracedProcess::EnterProgram() {
  threads_ = {process_};
  CLEW_RETURN_IF_ERROR(SingleStep(first_thread(), 0));
  CLEW_RETURN_IF_ERROR(Wait(first_thread(), true));
  return {};
}

Result<TraceeStop> TracedProcess::RunToExec() {
  for (int signal = 0;;) {
    CLEW_RETURN_IF_ERROR(Continue(first_thread(), signal));
    CLEW_ASSIGN_OR_RETURN(stop, Wait(first_thread(), true));
    if (stop.kind == TraceeStop::Kind::kExec) {
      CLEW_RETURN_IF_ERROR(EnterProgram());
    }
    if (stop.kind == TraceeStop::Kind::kExec || stop.has_ended()) {
      return stop;
    }
    signal = stop.signal;
  }
}

// The kernel ends all other threads first, and waits for us to have seen each
// end, but for that of the first thread, whose number the caller takes over.
Result<TraceeStop> TracedProcess::Execute(Tid thread) {
  CLEW_RETURN_IF_ERROR(SingleStep(thread, 0));
  for (;;) {
    const bool has_executed = NextStop(process_) == kExecStop;
    if (has_executed || NextStop(thread.as_int()) != 0 ||
        HasEnded(thread.as_int())) {
      // The first thread may have come to kExecStop just now.
      CLEW_ASSIGN_OR_RETURN(stop,
                            Wait(has_executed ? first_thread() : thread, true));
      if (stop.kind == TraceeStop::Kind::kExec) {
        CLEW_RETURN_IF_ERROR(EnterProgram());
      }
      return stop;
    }
    // Some may have been made just now, and not be known yet.
    for (const int32_t other : TasksOf(process_)) {
      if (other != process_ && other != thread.as_int() && HasEnded(other)) {
        CLEW_RETURN_IF_ERROR(Wait(Tid(other), true));
      }
    }
    sched_yield();
  }
}

TracedProcess::TracedProcess(TracedProcess&& other) noexcept
    : process_(std::exchange(other.process_, 0)),
      tell_traps_(other.tell_traps_),
      attached_(other.attached_),
      has_filters_(other.has_filters_),
      threads_(std::move(other.threads_)),
      waited_in_(std::move(other.waited_in_)) {}

TracedProcess& TracedProcess::operator=(TracedProcess&& other) noexcept {
  std::swap(process_, other.process_);
  std::swap(tell_traps_, other.tell_traps_);
  std::swap(attached_, other.attached_);
  std::swap(has_filters_, other.has_filters_);
  std::swap(threads_, other.threads_);
  std::swap(waited_in_, other.waited_in_);
  return *this;
}

TracedProcess::~TracedProcess() {
  if (process_ == 0 || threads_.empty()) {
    return;
  }
  if (attached_) {
    LetAllGo();
    return;
  }
  kill(process_, SIGKILL);
  // The kernel keeps the process until each of its threads is reaped, the first
  // one last. One may be a child process.
  for (const int32_t thread : threads_) {
    if (thread != process_) {
      kill(thread, SIGKILL);
      Reap(thread);
    }
  }
  Reap(process_);
}

void TracedProcess::LetAllGo() {
  for (const int32_t thread : std::set(threads_)) {
    if (Detach(Tid(thread), 0)) {
      continue;
    }
    const auto stop = Interrupt(Tid(thread));
    if (stop) {
      (void)Detach(Tid(thread), stop->signal);  // or it has ended
    }
  }
}

std::vector<Tid> TracedProcess::Threads() const {
  std::vector<Tid> threads;
  threads.reserve(threads_.size());
  for (const int32_t thread : threads_) {
    threads.emplace_back(thread);
  }
  return threads;
}

Status TracedProcess::Continue(Tid thread, int signal) {
  return Request(PTRACE_CONT, thread, static_cast<uint64_t>(signal),
                 "continue");
}

Result<TraceeStop> TracedProcess::Interrupt(Tid thread) {
  if (attached_) {
    CLEW_RETURN_IF_ERROR(Request(PTRACE_INTERRUPT, thread, 0, "interrupt"));
  } else {
    // Or it has ended. It may be another process.
    (void)syscall(SYS_tkill, thread.as_int(), SIGSTOP);
  }
  CLEW_ASSIGN_OR_RETURN(stop, Wait(thread, true));
  while (attached_ && stop.kind == TraceeStop::Kind::kTrap &&
         IsTrapPending(thread)) {
    CLEW_RETURN_IF_ERROR(Continue(thread, 0));
    CLEW_ASSIGN_OR_RETURN(trap, Wait(thread, true));
    stop = trap;
  }
  return stop;
}

// Of a step that ended while the thread was being stopped: it would kill a
// thread that nobody traces. A thread that goes on comes to it first.
bool TracedProcess::IsTrapPending(Tid thread) const {
  const uint64_t pending = StatusMask(ThreadText(thread, "status"), "SigPnd");
  return (pending >> (SIGTRAP - 1) & 1) != 0;
}

Status TracedProcess::SingleStep(Tid thread, int signal) {
  return Request(PTRACE_SINGLESTEP, thread, static_cast<uint64_t>(signal),
                 "step");
}

Status TracedProcess::LetGo(Tid process) {
  return Request(PTRACE_DETACH, process, 0, "let go of");
}

// It waits in pause(2), as a debugger of which nothing is left behind would
// have it: its parent is told of no stop.
Result<HandedOver> TracedProcess::HandOver(Tid process, int32_t tracer) {
  HandedOver over = {.process = process.as_int()};
  CLEW_ASSIGN_OR_RETURN(registers, Registers(process));
  over.registers = registers;
  CLEW_ASSIGN_OR_RETURN(mask, SignalMask(process));
  over.signal_mask = mask;
  const uint64_t insn = registers.rip - kSyscallBytes;
  errno = 0;
  const long code = ptrace(PTRACE_PEEKTEXT, process.as_int(), insn, nullptr);
  if (errno != 0 || static_cast<uint16_t>(code) != kSyscallInsn) {
    return Unsupported("process {} was not made by a SYSCALL", process);
  }
  // Where kernel.yama.ptrace_scope lets a process trace its descendants alone;
  // elsewhere it is refused.
  CLEW_ASSIGN_OR_RETURN(
      allowed, MakeCall(process, TraceeAddr(insn), SYS_prctl,
                        {PR_SET_PTRACER, static_cast<uint64_t>(tracer)}));
  (void)allowed;
  CLEW_RETURN_IF_ERROR(SetSignalMask(process, UINT64_MAX));
  registers.rip = insn;
  registers.rax = SYS_pause;
  registers.orig_rax = UINT64_MAX;
  CLEW_RETURN_IF_ERROR(SetRegisters(process, registers));
  CLEW_RETURN_IF_ERROR(LetGo(process));
  return over;
}

Result<TracedProcess> TracedProcess::TakeOver(const HandedOver& from) {
  auto taken = Attach(from.process);
  if (!taken) {
    return taken;
  }
  taken->waited_in_.clear();
  const Tid thread = taken->first_thread();
  user_regs_struct registers = from.registers;
  registers.orig_rax = UINT64_MAX;
  CLEW_RETURN_IF_ERROR(taken->SetRegisters(thread, registers));
  CLEW_RETURN_IF_ERROR(taken->SetSignalMask(thread, from.signal_mask));
  return taken;
}

Status TracedProcess::Detach(Tid thread, int signal) {
  CLEW_RETURN_IF_ERROR(Request(PTRACE_DETACH, thread,
                               static_cast<uint64_t>(signal), "let go of"));
  threads_.erase(thread.as_int());
  return {};
}

Result<TraceeStop> TracedProcess::Wait(Tid thread, bool may_block) {
  if (may_block && thread == first_thread() && threads_.size() > 1) {
    return WaitForFirst();
  }
  for (;;) {
    CLEW_ASSIGN_OR_RETURN(stop, Look(thread, may_block ? 0 : WNOHANG));
    if (stop) {
      return *stop;
    }
  }
}

// nullopt: it was interrupted.
Result<std::optional<TraceeStop>> TracedProcess::Look(Tid thread, int options) {
  int status = 0;
  const int32_t stopped = waitpid(thread.as_int(), &status, __WALL | options);
  if (stopped > 0) {
    CLEW_ASSIGN_OR_RETURN(stop,
                          Interpret(process_, thread, status, tell_traps_));
    Note(thread, stop);
    return stop;
  }
  if (stopped == 0) {
    return TraceeStop();
  }
  if (errno == EINTR) {
    return std::nullopt;
  }
  return SystemError(errno, fmt::format("cannot wait for thread {}", thread));
}

// Of a process that is killed, the kernel does not tell the end of the first
// thread before somebody has waited for all others. So they are waited for as
// soon as it has ended, which is looked for once some thread is heard to have.
Result<TraceeStop> TracedProcess::WaitForFirst() {
  constexpr useconds_t kLookEveryUs = 50;
  const Tid first = first_thread();
  while (ends_seen_ == ChildEnds::count()) {
    CLEW_ASSIGN_OR_RETURN(stop, Look(first, 0));
    if (stop) {
      return *stop;
    }
  }
  ends_seen_ = ChildEnds::count();
  for (;;) {
    CLEW_ASSIGN_OR_RETURN(stop, Look(first, WNOHANG));
    if (stop && stop->kind != TraceeStop::Kind::kRunning) {
      return *stop;
    }
    if (StateOf(first) == 'Z') {
      for (const int32_t other : std::set(threads_)) {
        if (other != process_ && StateOf(Tid(other)) == 'Z') {
          Reap(other);
          threads_.erase(other);
        }
      }
    }
    usleep(kLookEveryUs);
  }
}

Result<std::optional<TraceeStop>> TracedProcess::WaitOrAsleep(Tid thread,
                                                              int looks) {
  for (int look = 0;; ++look) {
    CLEW_ASSIGN_OR_RETURN(stop, Wait(thread, false));
    if (stop.kind != TraceeStop::Kind::kRunning) {
      return stop;
    }
    if (look >= looks && IsAsleep(thread)) {
      return std::nullopt;
    }
    sched_yield();
  }
}

Result<std::optional<TraceeStop>> TracedProcess::WaitOrLongAsleep(Tid thread) {
  constexpr int kLooksBeforeSleep = 100;
  constexpr useconds_t kLookEveryUs = 50;
  constexpr auto kLong = std::chrono::milliseconds(100);
  std::optional<std::chrono::steady_clock::time_point> asleep_since;
  for (int look = 0;; ++look) {
    CLEW_ASSIGN_OR_RETURN(stop, Wait(thread, false));
    if (stop.kind != TraceeStop::Kind::kRunning) {
      return stop;
    }
    if (look < kLooksBeforeSleep) {
      sched_yield();
      continue;
    }
    const auto now = std::chrono::steady_clock::now();
    if (StateOf(thread) != 'S') {  // 'D': it will not be long
      asleep_since.reset();
    } else if (!asleep_since) {
      asleep_since = now;
    } else if (now - *asleep_since > kLong) {
      return std::nullopt;
    }
    usleep(kLookEveryUs);
  }
}

void TracedProcess::Note(Tid thread, const TraceeStop& stop) {
  if (stop.kind == TraceeStop::Kind::kClone) {
    threads_.insert(stop.new_thread.as_int());
  } else if (stop.has_ended()) {
    threads_.erase(thread.as_int());
  }
}

char TracedProcess::StateOf(Tid thread) const {
  return ProcessState(fmt::format("/proc/{0}/task/{0}/stat", thread));
}

bool TracedProcess::IsAsleep(Tid thread) const {
  const char state = StateOf(thread);
  return state == 'S' || state == 'D' || state == 'Z';
}

// A filter might end the process for a call that it never makes itself. The
// kernel lets the filters of a traced thread be off: for CAP_SYS_ADMIN, and
// with CONFIG_CHECKPOINT_RESTORE (PTRACE_O_SUSPEND_SECCOMP).
Status TracedProcess::LookAtFilters() {
  const std::string own = TextOf("/proc/self/status");
  for (const Tid thread : Threads()) {
    const std::string its = ThreadText(thread, "status");
    has_filters_ |= FilterCount(its) > FilterCount(own);
  }
  if (!has_filters_) {
    return {};
  }
  const Status off = SetFilters(first_thread(), false);
  return off ? SetFilters(first_thread(), true)
             : Unsupported(
                   "process {} has filters of system calls (seccomp), which "
                   "might end it for what the recorder has it do, and cannot "
                   "be put aside meanwhile: {}; it needs CAP_SYS_ADMIN, and no "
                   "filter of the recorder's own",
                   process_, off.error().message);
}

Status TracedProcess::SetFilters(Tid thread, bool hold) {
  return has_filters_ ? Request(PTRACE_SETOPTIONS, thread,
                                kTraced | (hold ? 0 : PTRACE_O_SUSPEND_SECCOMP),
                                "set options of")
                      : Status();
}

std::string TracedProcess::WaitedIn(Tid thread) const {
  const auto known = waited_in_.find(thread.as_int());
  return known == waited_in_.end() ? std::string() : known->second;
}

std::string TracedProcess::ProcText(std::string_view name) const {
  return TextOf(fmt::format("/proc/{}/{}", process_, name));
}

std::string TracedProcess::ThreadText(Tid thread, std::string_view name) {
  return TextOf(fmt::format("/proc/{0}/task/{0}/{1}", thread, name));
}

}  // namespace clew
