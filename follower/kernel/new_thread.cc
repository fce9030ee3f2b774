#include "follower/kernel/new_thread.h"

#include <asm/unistd_64.h>
#include <sched.h>

#include <span>

#include "common/linux/syscall_result.h"

namespace clew::follower {
namespace {

// Source: linux/sched.h, struct clone_args, the first version of it.
struct CloneArgs {
  uint64_t flags;
  uint64_t pidfd;
  uint64_t child_tid;
  uint64_t parent_tid;
  uint64_t exit_signal;
  uint64_t stack;
  uint64_t stack_size;
  uint64_t tls;
};

std::optional<NewThread> AskedFor(const SyscallInput& call,
                                  const ProgramMemory& memory) {
  const auto& args = call.args;
  if (call.number == __NR_clone) {
    return NewThread{.tid = {},
                     .flags = args[0],
                     .stack_pointer = args[1],
                     .tls = args[4],
                     .child_tid_addr = args[3]};
  }
  if (call.number == __NR_vfork) {
    return NewThread{.tid = {}, .flags = CLONE_VM | CLONE_VFORK};
  }
  CloneArgs told = {};
  if (call.number != __NR_clone3 ||
      !memory.Read(args[0], std::as_writable_bytes(std::span(&told, 1)))) {
    return std::nullopt;
  }
  return NewThread{.tid = {},
                   .flags = told.flags,
                   .stack_pointer = told.stack + told.stack_size,
                   .tls = told.tls,
                   .child_tid_addr = told.child_tid};
}

}  // namespace

bool NewThread::is_process() const { return (flags & CLONE_THREAD) == 0; }

std::optional<NewThread> NewThreadOf(const SyscallInput& call,
                                     const ProgramMemory& memory) {
  const int64_t result = call.result.value_or(-1);
  auto made = IsErrorResult(result) ? std::nullopt : AskedFor(call, memory);
  if (!made || (made->flags & CLONE_VM) == 0) {
    return std::nullopt;
  }
  made->tid = Tid(static_cast<int32_t>(result));
  return made;
}

}  // namespace clew::follower
