#include "recorder/qemu/calls/refused_uses.h"

#include <asm/unistd_64.h>
#include <sched.h>
#include <sys/resource.h>

#include "common/linux/futex_command.h"

namespace clew::recorder {
namespace {

// vfork's child has memory of its own under QEMU; without CLONE_VFORK both run
// in one memory, of which only the parent's accesses would be seen. So it is
// wherever the child is not traced.
Status RefuseSharedMemory(const SyscallCall& call, const GuestMemory& memory) {
  const uint64_t flags = call.args[0];
  const bool in_qemu = memory.process() == 0;
  if (call.number == __NR_clone && MakesProcess(call) &&
      (flags & CLONE_VM) != 0 && (flags & CLONE_VFORK) == 0 &&
      (in_qemu || (flags & CLONE_UNTRACED) != 0)) {
    return Unsupported(
        "clone with flags {:#x}: a child process that shares its parent's "
        "memory cannot be recorded; run a program that makes none "
        "(LeakSanitizer does: LSAN_OPTIONS=detect_leaks=0)",
        flags);
  }
  return {};
}

// A time limit of such a wait is the host's, and QEMU's kernel has the thread
// with another number.
Status RefuseInheritance(const SyscallCall& call, const GuestMemory& memory) {
  if (call.number != __NR_futex) {
    return {};
  }
  const uint64_t operation = call.args[1];
  const bool in_qemu = memory.process() == 0;
  const bool has_limit = call.args[3] != 0;
  if (IsFutexLockRequeue(operation) ||
      (IsFutexLock(operation) && (in_qemu || has_limit))) {
    return Unsupported(
        "futex command {} ({}): {} for a lock with priority inheritance "
        "(PTHREAD_PRIO_INHERIT) cannot be recorded; run the program so that it "
        "does without",
        FutexCommandName(operation), FutexCommand(operation),
        IsFutexLock(operation) && has_limit ? "a wait with a time limit"
                                            : "a wait");
  }
  return {};
}

// What QEMU's process writes is the recording, too.
Status RefuseSmallFiles(const SyscallCall& call, const GuestMemory& memory) {
  const bool writes_recording = memory.process() == 0;
  const bool by_process = call.number == __NR_prlimit64;
  if (!writes_recording || (!by_process && call.number != __NR_setrlimit)) {
    return {};
  }
  const size_t resource = by_process ? 1 : 0;
  const uint64_t limit = call.args[by_process ? 2 : 1];
  if (static_cast<uint32_t>(call.args[resource]) == RLIMIT_FSIZE &&
      memory.Load<rlim_t>(limit).value_or(RLIM_INFINITY) != RLIM_INFINITY) {
    return Unsupported(
        "{}(RLIMIT_FSIZE): the files of the recording would be as small; run "
        "the program so that it does without",
        by_process ? "prlimit" : "setrlimit");
  }
  return {};
}

// Descriptors count as those of the process.
Status RefuseOwnDescriptors(const SyscallCall& call) {
  if (call.number == __NR_unshare && (call.args[0] & CLONE_FILES) != 0) {
    return Unsupported(
        "unshare with flags {:#x}: a thread with a table of descriptors of its "
        "own cannot be recorded; run the program so that it does without",
        call.args[0]);
  }
  return {};
}

}  // namespace

Status RefuseUse(const SyscallCall& call, const GuestMemory& memory) {
  CLEW_RETURN_IF_ERROR(RefuseSharedMemory(call, memory));
  CLEW_RETURN_IF_ERROR(RefuseOwnDescriptors(call));
  CLEW_RETURN_IF_ERROR(RefuseInheritance(call, memory));
  return RefuseSmallFiles(call, memory);
}

}  // namespace clew::recorder
