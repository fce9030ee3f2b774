// Goal: of the arguments of a call those bits count that the kernel looks at,
// as what is asked for says.
// Method: samples by hand, one for each row that the use of a call changes; the
// oracle is the kernel's signatures and manual pages.
#include "common/linux/argument_bits.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "common/linux/syscall_table.h"

namespace clew {
namespace {

TEST(ArgumentBitsTest, ArgumentsAreAsWideAsTheKernelLooks) {
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

TEST(ArgumentBitsTest, ArgumentsCountAsTheUseOfTheCallSays) {
  const Use uses[] = {
      {SYS_open, {0, O_RDONLY}, {64, 32, 0}},
      {SYS_open, {0, O_CREAT}, {64, 32, 16}},
      {SYS_openat, {0, 0, O_WRONLY}, {32, 64, 32, 0}},
      {SYS_openat, {0, 0, O_TMPFILE}, {32, 64, 32, 16}},
      {SYS_openat, {0, 0, O_DIRECTORY}, {32, 64, 32, 0}},
      {SYS_mmap, {0, 0, 0, MAP_PRIVATE}, {64, 64, 32, 32, 32, 64}},
      {SYS_mmap, {0, 0, 0, MAP_ANONYMOUS}, {64, 64, 32, 32, 0, 64}},
      {SYS_mremap, {0, 0, 0, MREMAP_MAYMOVE}, {64, 64, 64, 64, 0}},
      {SYS_mremap, {0, 0, 0, MREMAP_FIXED}, {64, 64, 64, 64, 64}},
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
      {SYS_prctl, {12345, 1, 2}, {32, 0, 0}},
      {SYS_keyctl, {KEYCTL_READ, 1, 2, 3, 4}, {32, 32, 64, 64, 0}},
      {SYS_keyctl, {12345, 1, 2}, {32, 0, 0}},
      {SYS_ioctl, {0, 0x54ff}, {32, 32, 64}},
      {SYS_semctl, {0, 1, IPC_STAT}, {32, 0, 32, 64}},
      {SYS_semctl, {0, 1, SETVAL}, {32, 32, 32, 32}},
      {SYS_futex, {0, FUTEX_WAKE_PRIVATE}, {64, 32, 32, 0, 0, 0}},
      {SYS_futex, {0, FUTEX_WAIT}, {64, 32, 32, 64, 0, 0}},
      {SYS_futex,
       {0, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME},
       {64, 32, 32, 64, 0, 32}},
      {SYS_futex, {0, FUTEX_CMP_REQUEUE}, {64, 32, 32, 32, 64, 32}},
      {SYS_futex, {0, FUTEX_UNLOCK_PI}, {64, 32}},
      {SYS_futex, {0, FUTEX_WAIT | 0x1000}, {64, 32, 32, 64, 64, 32}},
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
}  // namespace clew
