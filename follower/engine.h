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
  // These do what machine::Machine does, on the process's registers and memory.
  virtual machine::Stop Run(size_t thread, uint64_t max_insns) = 0;
  virtual void CompleteInsn(size_t thread, const InsnInput& input) = 0;

  // Called when the thread's SYSCALL has retired and the call is about to be
  // entered; arguments are in registers and memory.
  virtual void OnSyscall(size_t thread, const SyscallInput& call) = 0;
  // Called when the kernel has written memory on behalf of the thread, or put
  // other memory there, of which much may be.
  virtual void OnKernelWrite(size_t thread, uint64_t addr,
                             uint64_t size_bytes) = 0;
  // Called when the call has returned to user mode and rax is set.
  virtual void OnReturn(size_t thread, const SyscallInput& call) = 0;
  virtual void OnThreadCreated(size_t parent, size_t child) = 0;
  // Called, with ProcessOptions::force_path, when the machine went elsewhere
  // and was put on the recorded path.
  virtual void OnForced(size_t thread) = 0;
  // Called in the same case if it was not a branch but a fault, a signal or a
  // system call that was recorded otherwise.
  virtual void OnDeparted(size_t /*thread*/) {}
};

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_ENGINE_H_
