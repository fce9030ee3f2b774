#ifndef CLEW_RECORDER_NATIVE_TRACEE_ROBUST_LIST_H_
#define CLEW_RECORDER_NATIVE_TRACEE_ROBUST_LIST_H_

#include <vector>

#include "common/linux/syscall_reads.h"
#include "common/units.h"
#include "recorder/qemu/guest_memory.h"

namespace clew::recorder {

// The words of the robust locks that a thread holds: the kernel marks each as
// the lock of a dead owner when the thread ends, and wakes one waiter. Source:
// linux kernel/futex/core.c, exit_robust_list; linux/futex.h, struct
// robust_list_head. REQUIRES: the thread is stopped.
std::vector<MemoryRange> HeldRobustLocks(Tid thread, const GuestMemory& memory);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_TRACEE_ROBUST_LIST_H_
