#ifndef CLEW_RECORDER_QEMU_IPC_CALLS_H_
#define CLEW_RECORDER_QEMU_IPC_CALLS_H_

#include <vector>

#include "recorder/qemu/syscall_effects.h"

namespace clew::recorder {

// Semaphores, message queues and shared memory of System V and POSIX: when
// their calls may wait, asked of this host's kernel by the ids and descriptors
// that the program has, and what the kernel writes.

// semop, semtimedop; msgsnd; msgrcv. True also where that is not known.
bool SemaphoresMayBlock(const SyscallCall& call, const GuestMemory& memory);
bool MessageSendMayBlock(const SyscallCall& call);
bool MessageReceiveMayBlock(const SyscallCall& call);

// semctl, msgctl and shmctl, which succeeded.
void AddSemaphoreControl(const SyscallCall& call,
                         std::vector<MemoryRange>& ranges);
void AddMessageControl(const SyscallCall& call,
                       std::vector<MemoryRange>& ranges);
void AddSharedMemoryControl(const SyscallCall& call,
                            std::vector<MemoryRange>& ranges);

// shmat, which gave `addr`. kUnsupported: how long the segment is, the program
// may not know.
[[nodiscard]] Status AddSharedMemory(const SyscallCall& call, uint64_t addr,
                                     std::vector<MemoryRange>& ranges);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_IPC_CALLS_H_
