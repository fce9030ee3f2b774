#ifndef CLEW_FOLLOWER_KERNEL_CALL_OBSERVER_H_
#define CLEW_FOLLOWER_KERNEL_CALL_OBSERVER_H_

#include <cstdint>
#include <span>

#include "common/inputs.h"
#include "machine/cpu.h"
#include "machine/memory.h"

namespace clew::follower {

// Sees the calls of a process, each when it is entered.
class CallObserver {
 public:
  virtual ~CallObserver() = default;
  // The SYSCALL at `ip` is the insn_offset-th instruction of the run. What it
  // does to memory is observed after that.
  virtual void OnCall(uint64_t ip, uint64_t insn_offset,
                      const SyscallInput& call) = 0;
  // What `call` does to memory as it is entered has been observed.
  virtual void OnCallObserved(const SyscallInput& call) = 0;
};

// These tell an observer what a system call does to memory, as accesses.

// Reports the accesses of `call`, which is entered by the SYSCALL at `ip`, the
// insn_offset-th instruction of the run: a futex call is a read-modify-write of
// its word, what a call is given to read are reads, and what the kernel writes
// are writes if the call cannot sleep. Of a call that is not given to read what
// it was in the recorded run, 64 KiB beyond its result are reads.
void ObserveCall(machine::AccessObserver& observer,
                 const machine::Memory& memory, uint64_t ip,
                 uint64_t insn_offset, const SyscallInput& call);
// Reports writes of the kernel, which no instruction of the program makes.
void ObserveWrites(machine::AccessObserver& observer,
                   const machine::Memory& memory, uint64_t insn_offset,
                   std::span<const MemoryWrite> writes);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_KERNEL_CALL_OBSERVER_H_
