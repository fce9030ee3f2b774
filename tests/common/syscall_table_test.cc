// Goal: the table of system calls has a row for every call of the kernel, with
// every column; what the recorders and the follower ask of it agree.
// Method: exhaustive over the numbers; differential against the host's
// <asm/unistd_64.h> and against a list of argument counts that was taken from
// the kernel's include/linux/syscalls.h and SYSCALL_DEFINEs, not from the
// table.
#include "common/linux/syscall_table.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <string_view>

namespace clew {
namespace {

constexpr uint64_t kNumbersEnd = 1000;

// Calls by how many arguments SYSCALL_DEFINE gives them.
struct CallsOfCount {
  size_t count;
  const char* names;
};
constexpr CallsOfCount kDeclared[] = {
    {0,
     "rt_sigreturn sched_yield pause getpid fork vfork getuid getgid geteuid "
     "getegid getppid getpgrp setsid munlockall vhangup sync gettid "
     "restart_syscall inotify_init"},
    {1,
     "close brk pipe dup alarm exit uname shmdt fsync fdatasync chdir fchdir "
     "rmdir unlink umask sysinfo times setuid setgid getpgid setfsuid "
     "setfsgid getsid uselib personality sched_getscheduler "
     "sched_get_priority_max sched_get_priority_min mlockall adjtimex chroot "
     "acct swapoff iopl time io_destroy epoll_create set_tid_address "
     "timer_getoverrun timer_delete exit_group mq_unlink unshare eventfd "
     "epoll_create1 inotify_init1 syncfs userfaultfd pkey_free memfd_secret"},
    {2,
     "stat fstat lstat munmap access dup2 nanosleep getitimer shutdown "
     "listen kill msgget flock truncate ftruncate getcwd rename mkdir creat "
     "link symlink chmod fchmod gettimeofday getrlimit getrusage setpgid "
     "setreuid setregid getgroups setgroups capget capset rt_sigpending "
     "rt_sigsuspend sigaltstack utime ustat statfs fstatfs getpriority "
     "sched_setparam sched_getparam sched_rr_get_interval mlock munlock "
     "pivot_root arch_prctl setrlimit settimeofday umount2 swapon "
     "sethostname setdomainname delete_module removexattr lremovexattr "
     "fremovexattr tkill io_setup timer_gettime clock_settime clock_gettime "
     "clock_getres utimes mq_notify ioprio_get inotify_rm_watch "
     "set_robust_list timerfd_create timerfd_gettime eventfd2 pipe2 "
     "fanotify_init clock_adjtime setns memfd_create pkey_alloc "
     "io_uring_setup fsopen pidfd_open clone3 landlock_restrict_self "
     "process_mrelease"},
    {3,
     "read write open poll lseek mprotect ioctl readv writev msync mincore "
     "madvise shmget shmat shmctl setitimer socket connect accept sendmsg "
     "recvmsg bind getsockname getpeername execve semget semop msgctl fcntl "
     "getdents readlink chown fchown lchown syslog setresuid getresuid "
     "setresgid getresgid rt_sigqueueinfo mknod sysfs setpriority "
     "sched_setscheduler modify_ldt ioperm init_module readahead listxattr "
     "llistxattr flistxattr sched_setaffinity sched_getaffinity io_submit "
     "io_cancel lookup_dcookie getdents64 timer_create tgkill set_mempolicy "
     "mq_getsetattr ioprio_set inotify_add_watch mkdirat futimesat unlinkat "
     "symlinkat fchmodat faccessat get_robust_list signalfd dup3 "
     "open_by_handle_at getcpu finit_module sched_setattr seccomp getrandom "
     "bpf membarrier mlock2 open_tree fsmount fspick close_range pidfd_getfd "
     "landlock_create_ruleset"},
    {4,
     "rt_sigaction rt_sigprocmask pread64 pwrite64 sendfile socketpair wait4 "
     "semctl msgsnd ptrace rt_sigtimedwait reboot quotactl getxattr "
     "lgetxattr fgetxattr semtimedop fadvise64 timer_settime clock_nanosleep "
     "epoll_wait epoll_ctl mq_open kexec_load request_key migrate_pages "
     "openat mknodat newfstatat renameat readlinkat tee sync_file_range "
     "vmsplice utimensat fallocate timerfd_settime accept4 signalfd4 "
     "rt_tgsigqueueinfo prlimit64 sendmmsg sched_getattr pkey_mprotect rseq "
     "pidfd_send_signal io_uring_register openat2 faccessat2 quotactl_fd "
     "landlock_add_rule set_mempolicy_home_node"},
    {5,
     "select mremap setsockopt getsockopt clone msgrcv prctl mount setxattr "
     "lsetxattr fsetxattr io_getevents remap_file_pages get_mempolicy "
     "mq_timedsend mq_timedreceive waitid add_key keyctl fchownat linkat "
     "ppoll preadv pwritev perf_event_open recvmmsg fanotify_mark "
     "name_to_handle_at kcmp renameat2 kexec_file_load execveat statx "
     "move_mount fsconfig process_madvise mount_setattr futex_waitv"},
    {6,
     "mmap sendto recvfrom futex mbind pselect6 splice move_pages "
     "epoll_pwait process_vm_readv process_vm_writev copy_file_range preadv2 "
     "pwritev2 io_pgetevents io_uring_enter epoll_pwait2"},
};

// Numbers whose call Linux 6.1 has no longer, or not on x86-64.
constexpr const char* kGone =
    "_sysctl create_module get_kernel_syms query_module nfsservctl getpmsg "
    "putpmsg afs_syscall tuxcall security set_thread_area get_thread_area "
    "epoll_ctl_old epoll_wait_old vserver";

// The last arguments of these are looked at by no one on x86-64: the upper half
// of an offset, the cache of getcpu.
const std::map<std::string_view, size_t> kFewerCount = {
    {"preadv", 4}, {"pwritev", 4}, {"getcpu", 2}};

std::map<std::string, size_t> DeclaredCounts() {
  std::map<std::string, size_t> counts;
  const auto add = [&counts](const char* names, size_t count) {
    std::istringstream words(names);
    for (std::string name; words >> name;) {
      EXPECT_TRUE(counts.emplace(name, count).second) << name;
    }
  };
  for (const CallsOfCount& calls : kDeclared) {
    add(calls.names, calls.count);
  }
  add(kGone, 0);
  return counts;
}

TEST(SyscallTableTest, EveryCallHasTheArgumentsThatTheKernelDeclares) {
  const std::map<std::string, size_t> declared = DeclaredCounts();
  EXPECT_EQ(declared.size(), AllSyscalls().size());
  for (const SyscallRow& row : AllSyscalls()) {
    const auto found = declared.find(row.name);
    ASSERT_NE(found, declared.end()) << row.name;
    const auto fewer = kFewerCount.find(row.name);
    EXPECT_EQ(std::string_view(row.arguments).size(),
              fewer == kFewerCount.end() ? found->second : fewer->second)
        << row.name;
  }
}

TEST(SyscallTableTest, EveryNumberOfTheHostHasARow) {
  std::ifstream header("/usr/include/x86_64-linux-gnu/asm/unistd_64.h");
  std::string word;
  int compared = 0;
  while (header >> word) {
    uint64_t number = 0;
    if (word.starts_with("__NR_") && header >> number && number <= 450) {
      ASSERT_NE(FindSyscall(number), nullptr) << word;
      EXPECT_EQ(FindSyscall(number)->number, number);
      EXPECT_EQ("__NR_" + SyscallName(number), word);
      ++compared;
    }
  }
  EXPECT_GT(compared, 350);
  EXPECT_EQ(SyscallName(99'999), "syscall 99999");
  EXPECT_EQ(SyscallName(SyscallNumber(UINT64_MAX)), "syscall -1");
}

TEST(SyscallTableTest, WidthsAreLettersThatAreKnown) {
  for (const SyscallRow& row : AllSyscalls()) {
    const std::string_view widths = row.arguments;
    EXPECT_EQ(widths.find_first_not_of("lihb-"), widths.npos) << row.name;
  }
}

// What a recorder does not know of a call, it must not half know.
TEST(SyscallTableTest, ARowWithoutKnownEffectsSaysNone) {
  int known = 0;
  for (const SyscallRow& row : AllSyscalls()) {
    known += row.effects != KnownEffects::kNone ? 1 : 0;
    if (row.effects == KnownEffects::kNone ||
        row.effects == KnownEffects::kOfFailure) {
      EXPECT_EQ(row.writes[0].extent, Extent::kNone) << row.name;
      EXPECT_EQ(row.special, SpecialEffect::kNone) << row.name;
      EXPECT_EQ(row.output, SyscallOutput::kNone) << row.name;
      EXPECT_EQ(row.file_change, FileChange::kNone) << row.name;
    }
  }
  EXPECT_GE(known, 252);
}

// What is put out is read.
TEST(SyscallTableTest, OutputIsAmongWhatACallReads) {
  for (const SyscallRow& row : AllSyscalls()) {
    if (row.output != SyscallOutput::kNone) {
      EXPECT_EQ(row.reads[0].arg, 1) << row.name;
      EXPECT_NE(row.reads[0].extent, Extent::kNone) << row.name;
    }
  }
}

// A call that may wait while others run writes when it returns; one that waits
// and writes nothing is over, for those who look at memory, when it begins.
TEST(SyscallTableTest, WhatWaitsAndWritesIsNotOverAtItsEntry) {
  for (const SyscallRow& row : AllSyscalls()) {
    const bool waits = row.blocking != Blocking::kNever;
    const bool only_output = row.blocking == Blocking::kWritable &&
                             row.output != SyscallOutput::kNone;
    EXPECT_EQ(SyscallMayBlock(row.number), waits && !only_output) << row.name;
  }
  EXPECT_FALSE(SyscallMayBlock(99'999));
}

// Calls of which the manual pages say that they wait for others.
TEST(SyscallTableTest, CallsThatWaitAreKnownToWait) {
  for (const uint64_t number : {SYS_read,
                                SYS_readv,
                                SYS_pread64,
                                SYS_preadv,
                                SYS_preadv2,
                                SYS_poll,
                                SYS_ppoll,
                                SYS_select,
                                SYS_pselect6,
                                SYS_epoll_wait,
                                SYS_epoll_pwait,
                                SYS_epoll_pwait2,
                                SYS_accept,
                                SYS_accept4,
                                SYS_connect,
                                SYS_recvfrom,
                                SYS_recvmsg,
                                SYS_recvmmsg,
                                SYS_sendmmsg,
                                SYS_sendfile,
                                SYS_splice,
                                SYS_tee,
                                SYS_vmsplice,
                                SYS_fcntl,
                                SYS_flock,
                                SYS_futex,
                                SYS_futex_waitv,
                                SYS_nanosleep,
                                SYS_clock_nanosleep,
                                SYS_pause,
                                SYS_wait4,
                                SYS_waitid,
                                SYS_rt_sigtimedwait,
                                SYS_rt_sigsuspend,
                                SYS_semop,
                                SYS_semtimedop,
                                SYS_msgsnd,
                                SYS_msgrcv,
                                SYS_mq_timedsend,
                                SYS_mq_timedreceive,
                                SYS_io_getevents,
                                SYS_io_pgetevents,
                                SYS_io_uring_enter,
                                SYS_restart_syscall}) {
    EXPECT_TRUE(SyscallMayBlock(number)) << SyscallName(number);
  }
  for (const uint64_t number :
       {SYS_write, SYS_writev, SYS_sendto, SYS_sendmsg}) {
    EXPECT_EQ(FindSyscall(number)->blocking, Blocking::kWritable);
    EXPECT_FALSE(SyscallMayBlock(number)) << SyscallName(number);
  }
  EXPECT_FALSE(SyscallMayBlock(SYS_mmap));
}

TEST(SyscallTableTest, ArgumentsEndWhereTheKernelStopsLooking) {
  constexpr uint64_t kAll = ~uint64_t{0};
  const std::array<uint64_t, 6> args = {kAll, kAll, kAll, kAll, kAll, kAll};
  EXPECT_EQ(SyscallArgument(*FindSyscall(SYS_poll), args, 1), UINT32_MAX);
  EXPECT_EQ(SyscallArgument(*FindSyscall(SYS_write), args, 2), kAll);
  EXPECT_EQ(SyscallArgument(*FindSyscall(SYS_mkdir), args, 1), UINT16_MAX);
  EXPECT_EQ(SyscallArgument(*FindSyscall(SYS_exit), args, 0), UINT8_MAX);
}

}  // namespace
}  // namespace clew
