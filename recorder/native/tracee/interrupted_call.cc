#include "recorder/native/tracee/interrupted_call.h"

#include <asm/unistd_64.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/linux/syscall_result.h"
#include "common/linux/syscall_table.h"
#include "recorder/native/tracee/signal_disposition.h"

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

constexpr uint64_t kIsRestart = __NR_restart_syscall;

// The first argument of clock_nanosleep(2), a clockid_t, and not that of
// nanosleep(2), a pointer.
bool IsClock(uint64_t argument) {
  constexpr uint64_t kClocks = 16;  // linux/time.h, MAX_CLOCKS
  const uint64_t upper = argument >> 32;
  const bool is_negative =
      static_cast<int32_t>(argument) < 0 && (upper == 0 || upper == UINT32_MAX);
  return argument < kClocks || is_negative;
}

// Which call restart_syscall(2) goes on with, by the function of the kernel
// that the thread waits in: one of poll's, one of futex', or what is left.
// nullopt: it does not wait. Source: linux, callers of set_restart_fn().
std::optional<uint64_t> RestartedCall(std::string_view waits_in,
                                      const user_regs_struct& registers) {
  if (waits_in.empty() || waits_in == "0") {
    return std::nullopt;
  }
  if (waits_in.contains("poll")) {
    return __NR_poll;
  }
  if (waits_in.contains("futex")) {
    return __NR_futex;
  }
  return IsClock(registers.rdi) ? __NR_clock_nanosleep : __NR_nanosleep;
}

// A thread that was let go so, and has not made the call yet.
bool IsAtRestart(const TracedProcess& process,
                 const user_regs_struct& registers) {
  constexpr std::array<uint8_t, kSyscallBytes> kSyscall = {0x0f, 0x05};
  std::array<uint8_t, kSyscallBytes> insn = {};
  return registers.rax == kIsRestart &&
         process.ReadMemory(TraceeAddr(registers.rip), insn) == insn.size() &&
         insn == kSyscall;
}

}  // namespace

Status RewindInterruptedCall(TracedProcess& process, Tid thread,
                             bool with_time_left) {
  CLEW_ASSIGN_OR_RETURN(registers, process.Registers(thread));
  if (IsInterrupted(process, thread, registers)) {
    const bool restarts =
        with_time_left && static_cast<int64_t>(registers.rax) == kRestartBlock;
    registers.rip -= kSyscallBytes;
    registers.rax = restarts ? kIsRestart : registers.orig_rax;
    registers.orig_rax = UINT64_MAX;
  } else if (!IsAtRestart(process, registers)) {
    return {};
  }
  if (!with_time_left && registers.rax == kIsRestart) {
    const auto number = RestartedCall(process.WaitedIn(thread), registers);
    if (!number) {
      return Unsupported(
          "thread {} was about to go on with a call that was interrupted "
          "before (restart_syscall), and the kernel did not say which; try "
          "again",
          thread);
    }
    registers.rax = *number;
  }
  return process.SetRegisters(thread, registers);
}

}  // namespace clew::recorder
