#ifndef CLEW_RECORDER_QEMU_CALLS_IPC_CALLS_H_
#define CLEW_RECORDER_QEMU_CALLS_IPC_CALLS_H_

#include <vector>

#include "recorder/qemu/calls/syscall_effects.h"

namespace clew::recorder {

// Semaphores, message queues and shared memory of System V and POSIX: when
// their calls may wait, asked of this host's kernel by the ids and descriptors
// that the program has, and what the kernel writes.

// semop, semtimedop; msgsnd; msgrcv. True also where that is not known.
bool SemaphoresMayBlock(const SyscallCall& call, const GuestMemory& memory);
bool MessageSendMayBlock(const SyscallCall& call);
bool MessageReceiveMayBlock(const SyscallCall& call);

// Returns how many semaphores the set of a semctl has, 0 where this host's
// kernel does not tell.
uint64_t CountSemaphores(const SyscallCall& call);

// shmat, which gave `addr`. kUnsupported: how long the segment is, the program
// may not know.
[[nodiscard]] Status AddSharedMemory(const SyscallCall& call, uint64_t addr,
                                     std::vector<MemoryRange>& ranges);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_CALLS_IPC_CALLS_H_
