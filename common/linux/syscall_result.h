#ifndef CLEW_COMMON_LINUX_SYSCALL_RESULT_H_
#define CLEW_COMMON_LINUX_SYSCALL_RESULT_H_

#include <cstdint>

namespace clew {

// Whether what a system call returned is an error number, negated. An address
// that mmap returned may be negative, too.
//
// Source: linux/include/linux/err.h, MAX_ERRNO and IS_ERR_VALUE.
constexpr bool IsErrorResult(int64_t result) {
  constexpr int64_t kErrnoMax = 4095;
  return result < 0 && result >= -kErrnoMax;
}

// Result of a call that a signal interrupted and that is made again: rax keeps
// the number, and the thread is back at its SYSCALL, which a handler finds as
// the interrupted address. No program sees it.
//
// Source: linux/include/linux/errno.h, ERESTARTSYS.
inline constexpr int64_t kRestartSys = -512;

// Results that the kernel keeps for itself until it is known whether a signal
// is handled: ERESTARTSYS to ERESTART_RESTARTBLOCK.
//
// Source: linux/include/linux/errno.h.
inline constexpr int64_t kRestartBlock = -516;
constexpr bool AsksForRestart(int64_t result) {
  return result <= kRestartSys && result >= kRestartBlock;
}

inline constexpr uint64_t kSyscallBytes = 2;  // of the instruction

// Where a thread goes on whose call had that result; `after` is the address
// behind its SYSCALL.
//
// Source: linux/arch/x86/kernel/signal.c, handle_signal.
constexpr uint64_t IpAfterCall(int64_t result, uint64_t after) {
  return result == kRestartSys ? after - kSyscallBytes : after;
}

}  // namespace clew

#endif  // CLEW_COMMON_LINUX_SYSCALL_RESULT_H_
