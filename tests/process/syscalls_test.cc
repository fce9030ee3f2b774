// Goal: the numbers named here are the kernel's.
// Method: differential, against the host's <sys/syscall.h>.
#include "process/syscalls.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>

namespace clew::process {
namespace {

TEST(SyscallsTest, NamesAgreeWithTheHostsNumbers) {
  EXPECT_EQ(SyscallName(SYS_read), "read");
  EXPECT_EQ(SyscallName(SYS_mremap), "mremap");
  EXPECT_EQ(SyscallName(SYS_clone3), "clone3");
  EXPECT_EQ(SyscallName(SYS_getrandom), "getrandom");
  EXPECT_EQ(SyscallName(SYS_statx), "statx");
  EXPECT_EQ(SyscallName(SYS_epoll_pwait), "epoll_pwait");
  EXPECT_EQ(SyscallName(99'999), "syscall 99999");
  static_assert(kSysFutex == SYS_futex && kSysClone == SYS_clone &&
                kSysExitGroup == SYS_exit_group && kSysPpoll == SYS_ppoll &&
                kSysArchPrctl == SYS_arch_prctl && kSysMremap == SYS_mremap &&
                kSysRtSigreturn == SYS_rt_sigreturn &&
                kSysRtSigtimedwait == SYS_rt_sigtimedwait &&
                kSysWaitid == SYS_waitid && kSysAccept4 == SYS_accept4);
}

TEST(SyscallsTest, WhatSleepsMayBlockAndWhatDoesNotMayNot) {
  EXPECT_TRUE(MayBlock(SYS_futex));
  EXPECT_TRUE(MayBlock(SYS_clock_nanosleep));
  EXPECT_FALSE(MayBlock(SYS_mmap));
  EXPECT_FALSE(MayBlock(SYS_write));
  EXPECT_EQ(ArgumentCount(SYS_mmap), 6u);
  EXPECT_EQ(ArgumentCount(99'999), 0u);
}

}  // namespace
}  // namespace clew::process
