#ifndef CLEW_COMMON_LINUX_CALLS_SYSTEM_H_
#define CLEW_COMMON_LINUX_CALLS_SYSTEM_H_

#include "common/linux/syscall_row.h"

// Rows of the table of system calls: calls on the machine and its kernel.

namespace clew::syscall_rows {

inline constexpr SyscallRow kSystemCalls[] = {
    CLEW_CALL(uname, "l", .writes = {Fixed(0, kUtsname)}),
    CLEW_CALL(sysinfo, "l", .writes = {Fixed(0, kSysinfo)}),
    CLEW_CALL_UNKNOWN(syslog, "ili"),
    CLEW_CALL_UNKNOWN(uselib, "l"),
    CLEW_CALL(personality, "i"),
    CLEW_CALL_UNKNOWN(ustat, "il"),
    CLEW_CALL_UNKNOWN(sysfs, "ill"),
    CLEW_CALL_UNKNOWN(vhangup, ""),
    CLEW_CALL_UNKNOWN(modify_ldt, "ill"),
    CLEW_CALL_UNKNOWN(_sysctl, ""),
    CLEW_CALL(acct, "l", .reads = {Text(0)}),
    CLEW_CALL_UNKNOWN(swapon, "li"),
    CLEW_CALL_UNKNOWN(swapoff, "l"),
    CLEW_CALL_UNKNOWN(reboot, "iiil"),
    CLEW_CALL_UNKNOWN(sethostname, "li"),
    CLEW_CALL_UNKNOWN(setdomainname, "li"),
    CLEW_CALL_UNKNOWN(iopl, "i"),
    CLEW_CALL_UNKNOWN(ioperm, "lli"),
    CLEW_CALL_UNKNOWN(create_module, ""),
    CLEW_CALL_UNKNOWN(init_module, "lll"),
    CLEW_CALL_UNKNOWN(delete_module, "li"),
    CLEW_CALL_UNKNOWN(get_kernel_syms, ""),
    CLEW_CALL_UNKNOWN(query_module, ""),
    CLEW_CALL_FAILING(quotactl, "ilil"),
    CLEW_CALL_UNKNOWN(nfsservctl, ""),
    CLEW_CALL_UNKNOWN(afs_syscall, ""),
    CLEW_CALL_UNKNOWN(tuxcall, ""),
    CLEW_CALL_UNKNOWN(security, ""),
    CLEW_CALL_UNKNOWN(lookup_dcookie, "lll"),
    CLEW_CALL_UNKNOWN(vserver, ""),
    CLEW_CALL_UNKNOWN(kexec_load, "llll"),
    CLEW_CALL(add_key, "lllli", .reads = {Text(0), Text(1), Counted(2, 3)}),
    CLEW_CALL(request_key, "llli", .reads = {Text(0), Text(1), Text(2)}),
    CLEW_CALL(keyctl, "illll", .special = SpecialEffect::kRequest),
    CLEW_CALL_FAILING(perf_event_open, "liiil"),
    CLEW_CALL(getcpu, "ll", .writes = {Fixed(0, 4), Fixed(1, 4)}),
    CLEW_CALL_UNKNOWN(finit_module, "ili"),
    CLEW_CALL(getrandom, "lli", .writes = {Result(0, 1)}),
    CLEW_CALL_UNKNOWN(kexec_file_load, "iilll"),
    CLEW_CALL_FAILING(bpf, "ili"),
    CLEW_CALL_FAILING(quotactl_fd, "iiil"),
    CLEW_CALL_FAILING(landlock_create_ruleset, "lli"),
    CLEW_CALL_FAILING(landlock_add_rule, "iili"),
    CLEW_CALL_FAILING(landlock_restrict_self, "ii"),
};

}  // namespace clew::syscall_rows

#endif  // CLEW_COMMON_LINUX_CALLS_SYSTEM_H_
