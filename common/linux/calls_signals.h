#ifndef CLEW_COMMON_LINUX_CALLS_SIGNALS_H_
#define CLEW_COMMON_LINUX_CALLS_SIGNALS_H_

#include "common/linux/syscall_row.h"

// Rows of the table of system calls: calls on signals.

namespace clew::syscall_rows {

inline constexpr SyscallRow kSignalCalls[] = {
    CLEW_CALL(rt_sigaction, "illl", .writes = {Fixed(2, kSigaction)},
              .reads = {Fixed(1, kSigaction)}),
    CLEW_CALL(rt_sigprocmask, "illl", .writes = {Counted(2, 3)},
              .reads = {Counted(1, 3)}),
    CLEW_CALL(rt_sigreturn, ""),
    CLEW_CALL(pause, "", .blocking = Blocking::kAlways),
    CLEW_CALL(kill, "ii"),
    CLEW_CALL(rt_sigpending, "ll", .writes = {Counted(0, 1)}),
    CLEW_CALL(rt_sigtimedwait, "llll", .blocking = Blocking::kAlways,
              .writes = {Fixed(1, kSiginfo)},
              .reads = {Counted(0, 3), Fixed(2, kTimespec)}),
    CLEW_CALL(rt_sigqueueinfo, "iil", .reads = {Fixed(2, kQueuedSiginfo)}),
    CLEW_CALL(rt_sigsuspend, "ll", .blocking = Blocking::kAlways,
              .reads = {Counted(0, 1)}),
    CLEW_CALL(sigaltstack, "ll", .writes = {Fixed(1, kSigstack)},
              .reads = {Fixed(0, kSigstack)}),
    CLEW_CALL(tkill, "ii"),
    CLEW_CALL_UNKNOWN(restart_syscall, "", .blocking = Blocking::kAlways),
    CLEW_CALL(tgkill, "iii"),
    CLEW_CALL(signalfd, "ill", .reads = {Counted(1, 2)}),
    CLEW_CALL(signalfd4, "illi", .reads = {Counted(1, 2)}),
    CLEW_CALL(rt_tgsigqueueinfo, "iiil", .reads = {Fixed(3, kQueuedSiginfo)}),
    CLEW_CALL(pidfd_send_signal, "iili", .reads = {Fixed(2, kQueuedSiginfo)}),
};

}  // namespace clew::syscall_rows

#endif  // CLEW_COMMON_LINUX_CALLS_SIGNALS_H_
