#ifndef CLEW_COMMON_LINUX_REQUESTS_PRCTL_H_
#define CLEW_COMMON_LINUX_REQUESTS_PRCTL_H_

#include <asm/prctl.h>
#include <sys/prctl.h>

#include "common/linux/request_row.h"

// Rows of the table of requests: options of prctl and arch_prctl. Sources:
// linux/prctl.h, asm/prctl.h, and for the widths kernel/sys.c and
// arch/x86/kernel/process_64.c: of an option that must be given zeros, zeros
// are looked at, too.

namespace clew::request_rows {

inline constexpr uint16_t kFeatures = sizeof(uint64_t);  // of XSAVE
inline constexpr uint16_t kThreadName = 16;  // TASK_COMM_LEN, linux/sched.h

inline constexpr RequestRow kPrctlRequests[] = {
    CLEW_REQUEST(PR_SET_PDEATHSIG, "ii"),
    CLEW_REQUEST(PR_GET_PDEATHSIG, "il", .bytes = kInt),
    CLEW_REQUEST(PR_GET_DUMPABLE, "i"),
    CLEW_REQUEST(PR_SET_DUMPABLE, "il"),
    CLEW_REQUEST(PR_GET_KEEPCAPS, "i"),
    CLEW_REQUEST(PR_SET_KEEPCAPS, "il"),
    CLEW_REQUEST(PR_GET_TIMING, "i"),
    CLEW_REQUEST(PR_SET_TIMING, "il"),
    CLEW_REQUEST(PR_SET_NAME, "il"),
    CLEW_REQUEST(PR_GET_NAME, "il", .bytes = kThreadName),
    CLEW_REQUEST(PR_GET_SECCOMP, "i"),
    CLEW_REQUEST(PR_SET_SECCOMP, "il"),
    CLEW_REQUEST(PR_CAPBSET_READ, "il"),
    CLEW_REQUEST(PR_CAPBSET_DROP, "il"),
    CLEW_REQUEST(PR_GET_TSC, "il", .bytes = kInt),
    CLEW_REQUEST(PR_SET_TSC, "il"),
    CLEW_REQUEST(PR_GET_SECUREBITS, "i"),
    CLEW_REQUEST(PR_SET_SECUREBITS, "il"),
    CLEW_REQUEST(PR_TASK_PERF_EVENTS_DISABLE, "i"),
    CLEW_REQUEST(PR_TASK_PERF_EVENTS_ENABLE, "i"),
    CLEW_REQUEST(PR_SET_TIMERSLACK, "il"),
    CLEW_REQUEST(PR_GET_TIMERSLACK, "i"),
    CLEW_REQUEST(PR_MCE_KILL, "illll"),
    CLEW_REQUEST(PR_MCE_KILL_GET, "illll"),
    CLEW_REQUEST(PR_SET_CHILD_SUBREAPER, "il"),
    CLEW_REQUEST(PR_GET_CHILD_SUBREAPER, "il", .bytes = kInt),
    CLEW_REQUEST(PR_SET_NO_NEW_PRIVS, "illll"),
    CLEW_REQUEST(PR_GET_NO_NEW_PRIVS, "illll"),
    CLEW_REQUEST(PR_GET_TID_ADDRESS, "il", .bytes = kLong),
    CLEW_REQUEST(PR_SET_THP_DISABLE, "illll"),
    CLEW_REQUEST(PR_GET_THP_DISABLE, "illll"),
    CLEW_REQUEST(PR_CAP_AMBIENT, "illll"),
    CLEW_REQUEST(PR_GET_SPECULATION_CTRL, "illll"),
    CLEW_REQUEST(PR_SET_SPECULATION_CTRL, "illll"),
    CLEW_REQUEST(PR_SET_IO_FLUSHER, "illll"),
    CLEW_REQUEST(PR_GET_IO_FLUSHER, "illll"),
    CLEW_REQUEST(PR_SET_VMA, "illll"),
    CLEW_REQUEST(PR_SET_PTRACER, "il"),
};

inline constexpr RequestRow kArchPrctlRequests[] = {
    CLEW_REQUEST(ARCH_SET_GS, "il"),
    CLEW_REQUEST(ARCH_SET_FS, "il"),
    CLEW_REQUEST(ARCH_GET_FS, "il", .bytes = kLong),
    CLEW_REQUEST(ARCH_GET_GS, "il", .bytes = kLong),
    CLEW_REQUEST(ARCH_GET_CPUID, "i"),
    CLEW_REQUEST(ARCH_SET_CPUID, "il"),
    CLEW_REQUEST(ARCH_GET_XCOMP_SUPP, "il", .bytes = kFeatures),
    CLEW_REQUEST(ARCH_GET_XCOMP_PERM, "il", .bytes = kFeatures),
    CLEW_REQUEST(ARCH_REQ_XCOMP_PERM, "il"),
    CLEW_REQUEST(ARCH_GET_XCOMP_GUEST_PERM, "il", .bytes = kFeatures),
    CLEW_REQUEST(ARCH_REQ_XCOMP_GUEST_PERM, "il"),
    // Linux 6.6, asm/prctl.h; Debian 12's headers are older.
    {.name = "ARCH_SHSTK_ENABLE", .number = 0x5001, .arguments = "il"},
    {.name = "ARCH_SHSTK_DISABLE", .number = 0x5002, .arguments = "il"},
    {.name = "ARCH_SHSTK_LOCK", .number = 0x5003, .arguments = "il"},
    {.name = "ARCH_SHSTK_UNLOCK", .number = 0x5004, .arguments = "il"},
    {.name = "ARCH_SHSTK_STATUS",
     .number = 0x5005,
     .arguments = "il",
     .bytes = kLong},
};

}  // namespace clew::request_rows

#endif  // CLEW_COMMON_LINUX_REQUESTS_PRCTL_H_
