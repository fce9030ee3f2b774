#ifndef CLEW_FOLLOWER_ENGINE_H_
#define CLEW_FOLLOWER_ENGINE_H_

#include <cstddef>
#include <cstdint>

#include "common/inputs.h"
#include "machine/cpu.h"

namespace clew::follower {

// Runs the instructions of a process's threads in place of the concrete
// machine, and is told what the kernel did. symbolic/ plugs in one that keeps
// expressions beside the values. Values must come out as the concrete
// machine's.
class Engine {
 public:
  virtual ~Engine() = default;
  // As machine::Machine, on the process's registers and memory.
  virtual machine::Stop Run(size_t thread, uint64_t max_insns) = 0;
  virtual void CompleteInsn(size_t thread, const InsnInput& input) = 0;

  // The thread's SYSCALL has retired and the call is about to be entered;
  // arguments are in registers and memory.
  virtual void OnSyscall(size_t thread, const SyscallInput& call) = 0;
  // The kernel has written memory on behalf of the thread.
  virtual void OnKernelWrite(size_t thread, uint64_t addr,
                             uint64_t size_bytes) = 0;
  // The call returned to user mode; rax was set.
  virtual void OnReturn(size_t thread, const SyscallInput& call) = 0;
  virtual void OnThreadCreated(size_t parent, size_t child) = 0;
  // With ProcessOptions::force_path: the machine went elsewhere and was put on
  // the recorded path.
  virtual void OnForced(size_t thread) = 0;
  // The same where it was no branch: a fault, a signal or a system call that
  // was recorded otherwise.
  virtual void OnDeparted(size_t /*thread*/) {}
};

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_ENGINE_H_
