// A filter is a program of the kernel's "classic BPF" (linux/filter.h) that
// runs before each system call. Its shape, for each call number n:
//
//        load number
//        number == n ? return allow : next      calls without conditions
//        ...
//        number == n ? rule of n : next         calls whose arguments matter
//        ...
//        number > newest known ? return ENOSYS : return EPERM
//
// Invariant: outside a rule the accumulator holds the number; a rule loads an
// argument over it, and so always ends in a return.
//
// Example: kill. "number == 62 ? go on : skip 4; load argument 0; equals own
// process ? next : skip 1; return allow; return EPERM".
//
// An argument has 64 bits and the accumulator 32. Only such arguments are
// looked at of which the kernel takes the low half, or refuses others.
#include "common/os/syscall_filter.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace clew {
namespace {

constexpr std::array kAllowed = {
    // Memory of its own.
    SYS_brk, SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise,
    SYS_msync,
    // Descriptors that it has.
    SYS_read, SYS_write, SYS_readv, SYS_writev, SYS_pread64, SYS_pwrite64,
    SYS_preadv, SYS_pwritev, SYS_lseek, SYS_close, SYS_close_range, SYS_dup,
    SYS_dup2, SYS_dup3, SYS_fstat, SYS_ftruncate, SYS_fallocate, SYS_fsync,
    SYS_fdatasync, SYS_fadvise64, SYS_copy_file_range, SYS_sendfile,
    SYS_getdents64, SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6,
    SYS_epoll_create1, SYS_epoll_ctl, SYS_epoll_wait, SYS_epoll_pwait,
    SYS_eventfd2, SYS_pipe, SYS_pipe2,
    // Files by name: Landlock says which. open and openat are below.
    SYS_stat, SYS_lstat, SYS_newfstatat, SYS_statx, SYS_access, SYS_faccessat,
    SYS_faccessat2, SYS_readlink, SYS_readlinkat, SYS_getcwd, SYS_chdir,
    SYS_fchdir, SYS_rename, SYS_renameat, SYS_renameat2, SYS_unlink,
    SYS_unlinkat, SYS_umask,
    // Threads and itself.
    SYS_execve, SYS_exit, SYS_exit_group, SYS_wait4, SYS_waitid, SYS_futex,
    SYS_set_tid_address, SYS_set_robust_list, SYS_rseq, SYS_arch_prctl,
    SYS_membarrier, SYS_sched_yield, SYS_sched_getaffinity, SYS_getcpu,
    SYS_getpid, SYS_getppid, SYS_gettid, SYS_getpgrp, SYS_getuid, SYS_geteuid,
    SYS_getgid, SYS_getegid, SYS_getgroups, SYS_capget, SYS_getrlimit,
    SYS_setrlimit, SYS_getrusage, SYS_sysinfo, SYS_uname, SYS_getrandom,
    // Signals that it gets.
    SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_rt_sigsuspend,
    SYS_rt_sigpending, SYS_rt_sigtimedwait, SYS_sigaltstack, SYS_pause,
    SYS_restart_syscall,
    // Time.
    SYS_time, SYS_times, SYS_gettimeofday, SYS_clock_gettime, SYS_clock_getres,
    SYS_nanosleep, SYS_clock_nanosleep, SYS_alarm, SYS_setitimer,
    SYS_getitimer};

// Of whoever connects: what a resolver and a client of HTTP call.
constexpr std::array kAllowedOfNetwork = {
    SYS_connect,     SYS_sendto,      SYS_recvfrom,   SYS_sendmsg,
    SYS_recvmsg,     SYS_sendmmsg,    SYS_recvmmsg,   SYS_shutdown,
    SYS_getsockname, SYS_getpeername, SYS_getsockopt, SYS_setsockopt,
    SYS_socketpair};

// Of threads, fork and posix_spawn. CLONE_PARENT, above all, is not among them:
// it would make a process of the caller's parent.
constexpr uint32_t kCloneFlags =
    CSIGNAL | CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_VFORK |
    CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
    CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | CLONE_DETACHED;
// None that has signals sent to others, as F_SETOWN and F_SETSIG have.
constexpr std::initializer_list<uint32_t> kFcntlCommands = {
    F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL};
// What C and C++ libraries ask of streams; no terminal is written to by any.
constexpr std::initializer_list<uint32_t> kIoctlCommands = {TCGETS, TIOCGWINSZ,
                                                            FIONREAD};
constexpr std::initializer_list<uint32_t> kNetworkIoctlCommands = {
    TCGETS, TIOCGWINSZ, FIONREAD, FIONBIO};
constexpr std::initializer_list<uint32_t> kPrctlOptions = {
    PR_SET_NAME, PR_GET_NAME, PR_CAPBSET_READ, PR_GET_DUMPABLE, PR_SET_VMA};

// linux/audit.h has no name for it: calls of the x32 ABI.
constexpr uint32_t kX32Bit = 0x40000000;
// The newest call of Linux 6.0 (asm/unistd_64.h: set_mempolicy_home_node).
constexpr uint32_t kNewestKnown = 450;

constexpr uint32_t kAllow = SECCOMP_RET_ALLOW;
constexpr uint32_t Refusal(int error) {
  return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error);
}
constexpr uint32_t kRefuse = Refusal(EPERM);

constexpr uint32_t ArgumentOffset(size_t index) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args) + 8 * index);
}

class Filter {
 public:
  constexpr void Load(uint32_t offset) {
    Add(BPF_LD | BPF_W | BPF_ABS, offset);
  }
  constexpr void LoadArgument(size_t index) { Load(ArgumentOffset(index)); }
  constexpr void Mask(uint32_t bits) { Add(BPF_ALU | BPF_AND | BPF_K, bits); }
  constexpr void Return(uint32_t action) { Add(BPF_RET | BPF_K, action); }
  constexpr void ReturnIfEqual(uint32_t value, uint32_t action) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    Return(action);
  }
  constexpr void ReturnUnlessEqual(uint32_t value, uint32_t action) {
    Add(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0);
    Return(action);
  }
  constexpr void ReturnIfAnyOf(uint32_t bits, uint32_t action) {
    Add(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1);
    Return(action);
  }
  constexpr void ReturnIfAbove(uint32_t value, uint32_t action) {
    Add(BPF_JMP | BPF_JGT | BPF_K, value, 0, 1);
    Return(action);
  }
  // `rule` for the call `number`; it must end in a return.
  template <class Rule>
  constexpr void ForCall(long number, Rule rule) {
    const size_t jump = size_;
    Add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number));
    rule();
    code_.at(jump).jf = static_cast<uint8_t>(size_ - jump - 1);
  }
  constexpr sock_fprog Program() {
    return {static_cast<uint16_t>(size_), code_.data()};
  }

 private:
  constexpr void Add(uint32_t code, uint32_t k, uint8_t if_true = 0,
                     uint8_t if_false = 0) {
    code_.at(size_++) = {static_cast<uint16_t>(code), if_true, if_false, k};
  }

  std::array<sock_filter, 512> code_ = {};
  size_t size_ = 0;
};

// Allows `call` where argument `index` is one of `values`.
constexpr void AllowArguments(Filter& filter, long call, size_t index,
                              std::initializer_list<uint32_t> values,
                              int error) {
  filter.ForCall(call, [&] {
    filter.LoadArgument(index);
    for (const uint32_t value : values) {
      filter.ReturnIfEqual(value, kAllow);
    }
    filter.Return(Refusal(error));
  });
}

// Linux 6.1's Landlock (security/landlock/fs.c, get_file_access) asks what a
// file is opened for, not whether opening cuts it; and sees nothing asked for
// in the access mode 3, which open(2) has under "NOTES".
constexpr void AddOpenRule(Filter& filter, long call, size_t flags) {
  filter.ForCall(call, [&] {
    filter.LoadArgument(flags);
    filter.Mask(O_ACCMODE | O_TRUNC);
    filter.ReturnIfEqual(O_TRUNC | O_RDONLY, kRefuse);
    filter.Mask(O_ACCMODE);
    filter.ReturnIfEqual(O_ACCMODE, kRefuse);
    filter.Return(kAllow);
  });
}

constexpr void AddProcessRules(Filter& filter, bool may_fork) {
  // Its flags are in memory, where a filter cannot look; the C library then
  // uses clone.
  filter.ReturnIfEqual(SYS_clone3, Refusal(ENOSYS));
  filter.ForCall(SYS_clone, [&] {
    filter.LoadArgument(0);
    filter.ReturnIfAnyOf(~kCloneFlags, kRefuse);
    filter.ReturnIfAnyOf(CLONE_THREAD, kAllow);
    filter.Return(may_fork ? kAllow : kRefuse);
  });
  filter.ReturnIfEqual(SYS_fork, may_fork ? kAllow : kRefuse);
  filter.ReturnIfEqual(SYS_vfork, may_fork ? kAllow : kRefuse);
}

constexpr void AddPrctlRule(Filter& filter) {
  filter.ForCall(SYS_prctl, [&] {
    filter.LoadArgument(0);
    for (const uint32_t option : kPrctlOptions) {
      filter.ReturnIfEqual(option, kAllow);
    }
    filter.ForCall(PR_SET_PDEATHSIG, [&] {  // never to outlive the parent
      filter.LoadArgument(1);
      filter.ReturnIfEqual(SIGKILL, kAllow);
      filter.Return(kRefuse);
    });
    filter.Return(kRefuse);
  });
}

// abort(3) and raise(3) signal their own process.
constexpr void AddSignalRules(Filter& filter, uint32_t process) {
  AllowArguments(filter, SYS_kill, 0, {process}, EPERM);
  AllowArguments(filter, SYS_tgkill, 0, {process}, EPERM);
}

constexpr void AddNetworkRules(Filter& filter) {
  for (const long number : kAllowedOfNetwork) {
    filter.ReturnIfEqual(static_cast<uint32_t>(number), kAllow);
  }
  AllowArguments(filter, SYS_socket, 0, {AF_INET, AF_INET6}, EAFNOSUPPORT);
}

// What is not ours to filter ends the process.
constexpr void KillOtherAbis(Filter& filter) {
  filter.Load(offsetof(seccomp_data, arch));
  filter.ReturnUnlessEqual(AUDIT_ARCH_X86_64, SECCOMP_RET_KILL_PROCESS);
  filter.Load(offsetof(seccomp_data, nr));
  filter.ReturnIfAnyOf(kX32Bit, SECCOMP_RET_KILL_PROCESS);
}

constexpr Filter MakeFilter(SyscallNeeds needs, uint32_t process) {
  Filter filter;
  KillOtherAbis(filter);
  for (const long number : kAllowed) {
    filter.ReturnIfEqual(static_cast<uint32_t>(number), kAllow);
  }
  AddOpenRule(filter, SYS_open, 1);
  AddOpenRule(filter, SYS_openat, 2);
  AllowArguments(filter, SYS_fcntl, 1, kFcntlCommands, EPERM);
  AllowArguments(filter, SYS_ioctl, 1,
                 needs.network ? kNetworkIoctlCommands : kIoctlCommands,
                 ENOTTY);
  AllowArguments(filter, SYS_prlimit64, 0, {0}, EPERM);  // the caller
  AddPrctlRule(filter);
  AddSignalRules(filter, process);
  AddProcessRules(filter, needs.fork);
  if (needs.network) {
    AddNetworkRules(filter);
  }
  filter.ReturnIfAbove(kNewestKnown, Refusal(ENOSYS));
  filter.Return(kRefuse);
  return filter;
}

}  // namespace

int EnterSyscallFilter(SyscallNeeds needs) {
  Filter filter = MakeFilter(needs, static_cast<uint32_t>(getpid()));
  const sock_fprog program = filter.Program();
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 ? 0 : errno;
}

}  // namespace clew
