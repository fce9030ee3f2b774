#include "recorder/native/interrupted_call.h"

#include <asm/unistd_64.h>

#include <cerrno>
#include <cstdint>

#include "common/linux/syscall_result.h"
#include "common/linux/syscall_table.h"
#include "recorder/native/signal_disposition.h"

namespace clew::recorder {
namespace {

// Whether a call that a stop interrupted is to be made once more: also one that
// the kernel does not restart after a signal that nobody handles (signal(7),
// "Interruption of system calls ... by stop signals").
bool IsInterrupted(const TracedProcess& process, Tid thread,
                   const user_regs_struct& registers) {
  const auto number = static_cast<int64_t>(registers.orig_rax);
  const auto result = static_cast<int64_t>(registers.rax);
  return number >= 0 && (AsksForRestart(result) ||
                         (result == -EINTR &&
                          SyscallMayBlock(SyscallNumber(registers.orig_rax)) &&
                          !IsSignalDue(process, thread)));
}

}  // namespace

Status RewindInterruptedCall(TracedProcess& process, Tid thread,
                             bool with_time_left) {
  CLEW_ASSIGN_OR_RETURN(registers, process.Registers(thread));
  if (!IsInterrupted(process, thread, registers)) {
    return {};
  }
  const bool restarts =
      with_time_left && static_cast<int64_t>(registers.rax) == kRestartBlock;
  registers.rip -= kSyscallBytes;
  registers.rax = restarts ? __NR_restart_syscall : registers.orig_rax;
  registers.orig_rax = UINT64_MAX;
  return process.SetRegisters(thread, registers);
}

}  // namespace clew::recorder
