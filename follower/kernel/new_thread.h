#ifndef CLEW_FOLLOWER_KERNEL_NEW_THREAD_H_
#define CLEW_FOLLOWER_KERNEL_NEW_THREAD_H_

#include <cstdint>
#include <optional>

#include "common/inputs.h"
#include "common/linux/syscall_reads.h"

namespace clew::follower {

// How a thread begins that a call has made.
struct NewThread {
  Tid tid;
  uint64_t flags = 0;           // CLONE_...
  uint64_t stack_pointer = 0;   // 0: that of the thread that made it
  uint64_t tls = 0;             // with CLONE_SETTLS
  uint64_t child_tid_addr = 0;  // with CLONE_CHILD_SETTID, _CLEARTID

  bool is_process() const;
};

// Returns the thread that `call`, clone(2), clone3(2) or vfork(2), has made, in
// this process or in one that has its memory. `memory` is as it was when the
// call was entered. nullopt: it is another call, it failed, or it made a
// process with memory of its own.
std::optional<NewThread> NewThreadOf(const SyscallInput& call,
                                     const ProgramMemory& memory);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_KERNEL_NEW_THREAD_H_
