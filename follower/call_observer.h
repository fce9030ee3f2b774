#ifndef CLEW_FOLLOWER_CALL_OBSERVER_H_
#define CLEW_FOLLOWER_CALL_OBSERVER_H_

#include <cstdint>
#include <span>

#include "common/inputs.h"
#include "machine/cpu.h"
#include "machine/memory.h"

namespace clew::follower {

// What a system call does to memory, as accesses for an observer.

// `call` is entered by the SYSCALL at `ip`, the insn_offset-th instruction of
// the run: a futex call is a read-modify-write of its word, what it is given to
// read are reads, and what the kernel writes, where the call cannot sleep,
// writes.
void ObserveCall(machine::AccessObserver& observer,
                 const machine::Memory& memory, uint64_t ip,
                 uint64_t insn_offset, const SyscallInput& call);
// Kernel writes, by no instruction of the program.
void ObserveWrites(machine::AccessObserver& observer, uint64_t insn_offset,
                   std::span<const MemoryWrite> writes);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_CALL_OBSERVER_H_
