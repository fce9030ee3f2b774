// Goal: numbers, names and the sizes of arguments are the kernel's; what the
// recorder records, the follower knows, so that the two tables cannot drift.
// Method: exhaustive over the numbers; differential against the host's
// <asm/unistd_64.h> and against the recorder's table. Oracle of the sizes:
// samples by hand, one for each row that the use of a call changes.
#include "follower/syscalls.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "common/syscalls.h"
#include "recorder/qemu/syscall_table.h"

namespace clew::follower {
namespace {

constexpr uint64_t kNumbersEnd = 1000;

TEST(SyscallsTest, EveryNameHasTheHostsNumber) {
  std::ifstream header("/usr/include/x86_64-linux-gnu/asm/unistd_64.h");
  std::string word;
  int compared = 0;
  while (header >> word) {
    uint64_t number = 0;
    if (word.starts_with("__NR_") && header >> number && number <= 450) {
      EXPECT_EQ("__NR_" + SyscallName(number), word) << number;
      ++compared;
    }
  }
  EXPECT_GT(compared, 350);
  EXPECT_EQ(SyscallName(99'999), "syscall 99999");
}

TEST(SyscallsTest, TheNumbersNamedHereAreTheHosts) {
  static_assert(kSysFutex == SYS_futex && kSysClone == SYS_clone &&
                kSysExitGroup == SYS_exit_group && kSysPpoll == SYS_ppoll &&
                kSysArchPrctl == SYS_arch_prctl && kSysMremap == SYS_mremap &&
                kSysRtSigreturn == SYS_rt_sigreturn &&
                kSysRtSigtimedwait == SYS_rt_sigtimedwait &&
                kSysWaitid == SYS_waitid && kSysAccept4 == SYS_accept4);
  static_assert(
      kSysSemop == SYS_semop && kSysMsgsnd == SYS_msgsnd &&
      kSysMsgrcv == SYS_msgrcv && kSysFlock == SYS_flock &&
      kSysIoGetevents == SYS_io_getevents &&
      kSysRestartSyscall == SYS_restart_syscall &&
      kSysSemtimedop == SYS_semtimedop && kSysMqTimedsend == SYS_mq_timedsend &&
      kSysMqTimedreceive == SYS_mq_timedreceive && kSysSplice == SYS_splice &&
      kSysTee == SYS_tee && kSysVmsplice == SYS_vmsplice &&
      kSysPreadv == SYS_preadv && kSysRecvmmsg == SYS_recvmmsg &&
      kSysSendmmsg == SYS_sendmmsg && kSysPreadv2 == SYS_preadv2 &&
      kSysIoPgetevents == SYS_io_pgetevents &&
      kSysIoUringEnter == SYS_io_uring_enter &&
      kSysEpollPwait2 == SYS_epoll_pwait2);
}

// A call without arguments is one that the kernel declares so
// (SYSCALL_DEFINE0).
TEST(SyscallsTest, EveryRecordedCallHasItsArguments) {
  constexpr uint64_t kWithout[] = {
      SYS_rt_sigreturn, SYS_sched_yield, SYS_pause,        SYS_getpid,
      SYS_getuid,       SYS_getgid,      SYS_geteuid,      SYS_getegid,
      SYS_getppid,      SYS_getpgrp,     SYS_setsid,       SYS_munlockall,
      SYS_sync,         SYS_gettid,      SYS_inotify_init, SYS_fork,
      SYS_vfork};
  int recorded = 0;
  for (uint64_t number = 0; number < kNumbersEnd; ++number) {
    if (recorder::FindSyscall(number) == nullptr) {
      continue;
    }
    ++recorded;
    ASSERT_NE(FindPrototype(number), nullptr) << number;
    const bool none = BitsOfArguments(number, {}) == ArgumentBits{};
    EXPECT_EQ(none, std::ranges::find(kWithout, number) != std::end(kWithout))
        << SyscallName(number);
  }
  EXPECT_GE(recorded, 252);
}

// What the recorder says that the kernel writes or reads is at an argument.
TEST(SyscallsTest, PointersOfTheRecordersRowsAreWholeArguments) {
  for (uint64_t number = 0; number < kNumbersEnd; ++number) {
    const recorder::SyscallRule* const rule = recorder::FindSyscall(number);
    if (rule == nullptr) {
      continue;
    }
    const std::string_view arguments = FindPrototype(number)->arguments;
    for (const recorder::Written& written : rule->writes) {
      if (written.size != recorder::Size::kNone) {
        ASSERT_LT(written.arg, arguments.size()) << SyscallName(number);
        EXPECT_EQ(arguments[written.arg], 'l')
            << SyscallName(number) << " argument " << int{written.arg};
      }
    }
    if (rule->output != recorder::Output::kNone) {
      EXPECT_EQ(arguments[1], 'l') << SyscallName(number);
    }
  }
}

TEST(SyscallsTest, WhatTheRecorderLetsSleepMayBlock) {
  using recorder::Blocking;
  for (uint64_t number = 0; number < kNumbersEnd; ++number) {
    const recorder::SyscallRule* const rule = recorder::FindSyscall(number);
    // An output writes no memory: it is no matter when.
    if (rule != nullptr && rule->blocking != Blocking::kNever &&
        rule->blocking != Blocking::kWritable) {
      EXPECT_TRUE(MayBlock(number)) << SyscallName(number);
    }
  }
  for (const uint64_t number :
       {SYS_sendmmsg, SYS_recvmmsg, SYS_epoll_pwait2, SYS_io_getevents,
        SYS_msgrcv, SYS_semop, SYS_semtimedop, SYS_mq_timedreceive,
        SYS_preadv2}) {
    EXPECT_TRUE(MayBlock(number)) << SyscallName(number);
  }
  EXPECT_FALSE(MayBlock(SYS_mmap));
  EXPECT_FALSE(MayBlock(SYS_write));
}

TEST(SyscallsTest, ArgumentsAreAsWideAsTheKernelLooks) {
  EXPECT_EQ(BitsOfArguments(SYS_write, {}), (ArgumentBits{32, 64, 64}));
  EXPECT_EQ(BitsOfArguments(SYS_mkdir, {}), (ArgumentBits{64, 16}));
  EXPECT_EQ(BitsOfArguments(SYS_exit_group, {}), (ArgumentBits{8}));
  EXPECT_EQ(BitsOfArguments(SYS_preadv2, {}),
            (ArgumentBits{32, 64, 64, 64, 0, 32}));
  EXPECT_EQ(BitsOfArguments(99'999, {}), ArgumentBits{});
}

// Each line: the call, its arguments, how many bits of each count.
struct Use {
  uint64_t number;
  std::array<uint64_t, 6> args;
  ArgumentBits bits;
};

TEST(SyscallsTest, ArgumentsCountAsTheUseOfTheCallSays) {
  const Use uses[] = {
      {SYS_open, {0, O_RDONLY}, {64, 32, 0}},
      {SYS_open, {0, O_CREAT}, {64, 32, 16}},
      {SYS_openat, {0, 0, O_WRONLY}, {32, 64, 32, 0}},
      {SYS_openat, {0, 0, O_TMPFILE}, {32, 64, 32, 16}},
      {SYS_openat, {0, 0, O_DIRECTORY}, {32, 64, 32, 0}},
      {SYS_mmap, {0, 0, 0, MAP_PRIVATE}, {64, 64, 32, 32, 32, 64}},
      {SYS_mmap, {0, 0, 0, MAP_ANONYMOUS}, {64, 64, 32, 32, 0, 64}},
      {SYS_mremap, {0, 0, 0, MREMAP_MAYMOVE}, {64, 64, 64, 32, 0}},
      {SYS_mremap, {0, 0, 0, MREMAP_FIXED}, {64, 64, 64, 32, 64}},
      {SYS_clone, {CLONE_THREAD, 1, 2, 3, 4}, {64, 64, 0, 0, 0}},
      {SYS_clone, {CLONE_SETTLS}, {64, 64, 0, 0, 64}},
      {SYS_clone, {CLONE_PARENT_SETTID}, {64, 64, 64, 0, 0}},
      {SYS_clone, {CLONE_CHILD_CLEARTID}, {64, 64, 0, 64, 0}},
      {SYS_fcntl, {0, F_GETFL}, {32, 32, 0}},
      {SYS_fcntl, {0, F_SETFL}, {32, 32, 32}},
      {SYS_fcntl, {0, F_SETLKW}, {32, 32, 64}},
      {SYS_ioctl, {0, TIOCGWINSZ}, {32, 32, 64}},
      {SYS_ioctl, {0, TIOCNOTTY}, {32, 32, 0}},
      {SYS_ioctl, {0, FIONBIO}, {32, 32, 64}},
      {SYS_ioctl, {0, _IOR('x', 1, int)}, {32, 32, 64}},
      {SYS_ioctl, {0, _IO('x', 1)}, {32, 32, 0}},
      {SYS_prctl, {PR_SET_NAME, 1, 2, 3, 4}, {32, 64, 0, 0, 0}},
      {SYS_prctl, {PR_GET_DUMPABLE}, {32, 0}},
      {SYS_prctl, {PR_SET_NO_NEW_PRIVS}, {32, 64, 64, 64, 64}},
      {SYS_futex, {0, FUTEX_WAKE_PRIVATE}, {64, 32, 32, 0, 0, 0}},
      {SYS_futex, {0, FUTEX_WAIT}, {64, 32, 32, 64, 0, 0}},
      {SYS_futex,
       {0, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME},
       {64, 32, 32, 64, 0, 32}},
      {SYS_futex, {0, FUTEX_CMP_REQUEUE}, {64, 32, 32, 32, 64, 32}},
      {SYS_futex, {0, FUTEX_UNLOCK_PI}, {64, 32}},
      {SYS_accept, {3, 0, 7}, {32, 64, 0}},
      {SYS_accept, {3, 1, 7}, {32, 64, 64}},
      {SYS_sendto, {3}, {32, 64, 64, 32, 64, 0}},
      {SYS_rt_sigprocmask, {9, 0}, {0, 64, 64, 64}},
      {SYS_rt_sigprocmask, {9, 1}, {32, 64, 64, 64}},
      {SYS_clock_nanosleep, {0, TIMER_ABSTIME}, {32, 32, 64, 0}},
      {SYS_clock_nanosleep, {0, 0}, {32, 32, 64, 64}},
      {SYS_epoll_ctl, {3, EPOLL_CTL_DEL}, {32, 32, 32, 0}},
      {SYS_epoll_ctl, {3, EPOLL_CTL_ADD}, {32, 32, 32, 64}},
      {SYS_waitid, {P_ALL}, {32, 0, 64, 32, 64}},
      {SYS_waitid, {P_PID}, {32, 32, 64, 32, 64}},
  };
  for (const Use& use : uses) {
    EXPECT_EQ(BitsOfArguments(use.number, use.args), use.bits)
        << SyscallName(use.number) << " " << use.args[0] << ", " << use.args[1]
        << ", " << use.args[2] << ", " << use.args[3];
  }
}

}  // namespace
}  // namespace clew::follower
