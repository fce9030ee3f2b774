#include "recorder/tracer/free/memory_copy.h"

#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <utility>

namespace clew::tracer {
Result<MemoryCopy> MemoryCopy::Make(FreeStops& stops, Tid tid,
                                    FreeStops::Thread& thread) {
  // No signal at its end; the same stack.
  CLEW_ASSIGN_OR_RETURN(call,
                        stops.MakeCall(tid, thread, SYS_clone, {CLONE_FILES}));
  if (call.made == Tid(0)) {
    return SystemError(static_cast<int>(-call.result),
                       "cannot make a process that keeps the program's memory");
  }
  return MemoryCopy(call.made.as_int());
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
