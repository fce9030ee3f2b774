#include "recorder/tracer/memory_copy.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#include <cerrno>
#include <utility>

namespace clew::tracer {
namespace {

using Kind = TraceeStop::Kind;

bool IsBreakpoint(const TraceeStop& stop) {
  return (stop.kind == Kind::kTrap && !stop.is_without_signal) ||
         (stop.kind == Kind::kSignal && stop.signal == SIGTRAP);
}

// Lets a thread that is about to make a clone do so and come to its breakpoint.
// Returns what it made; 0: the call failed.
Result<Tid> RunClone(TracedProcess& process, Tid thread) {
  Tid made(0);
  for (;;) {
    CLEW_RETURN_IF_ERROR(process.Continue(thread, 0));
    CLEW_ASSIGN_OR_RETURN(stop, process.Wait(thread, true));
    if (stop.kind == Kind::kFork) {
      made = stop.new_thread;
      CLEW_RETURN_IF_ERROR(process.Wait(made, true));
    } else if (IsBreakpoint(stop)) {
      return made;
    } else if (stop.kind == Kind::kExited || stop.kind == Kind::kKilled) {
      return Unsupported("the program was ended from outside");
    }
  }
}

}  // namespace

Result<MemoryCopy> MemoryCopy::Make(TracedProcess& process, Tid thread,
                                    const SharedMemory& shared) {
  CLEW_ASSIGN_OR_RETURN(before, process.Registers(thread));
  user_regs_struct call = before;
  call.rip = shared.header().places.image + kCallAt;
  call.eflags = kClearFlags;
  call.orig_rax = UINT64_MAX;
  call.rax = SYS_clone;
  call.rdi = CLONE_FILES;  // and no signal at its end
  call.rsi = 0;            // the same stack
  call.rdx = 0;
  call.r10 = 0;
  call.r8 = 0;
  CLEW_RETURN_IF_ERROR(process.SetRegisters(thread, call));
  const auto made = RunClone(process, thread);
  const auto after = process.Registers(thread);
  CLEW_RETURN_IF_ERROR(process.SetRegisters(thread, before));
  CLEW_RETURN_IF_ERROR(made);
  CLEW_RETURN_IF_ERROR(after);
  if (*made == Tid(0)) {
    return SystemError(static_cast<int>(-static_cast<int64_t>(after->rax)),
                       "cannot make a process that keeps the program's memory");
  }
  return MemoryCopy(made->as_int());
}

MemoryCopy::MemoryCopy(MemoryCopy&& other) noexcept
    : copy_(std::exchange(other.copy_, 0)) {}

MemoryCopy& MemoryCopy::operator=(MemoryCopy&& other) noexcept {
  std::swap(copy_, other.copy_);
  return *this;
}

MemoryCopy::~MemoryCopy() {
  if (copy_ == 0) {
    return;
  }
  kill(copy_, SIGKILL);
  int status = 0;
  while (waitpid(copy_, &status, __WALL) >= 0 || errno == EINTR) {
    if (WIFEXITED(status) || WIFSIGNALED(status)) {
      return;
    }
  }
}

}  // namespace clew::tracer
