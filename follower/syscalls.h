#ifndef CLEW_FOLLOWER_SYSCALLS_H_
#define CLEW_FOLLOWER_SYSCALLS_H_

#include <array>
#include <cstdint>

namespace clew::follower {

// x86-64 system call numbers that the process model treats specially.
// Source: linux arch/x86/entry/syscalls/syscall_64.tbl.
enum SyscallNumber : uint64_t {
  kSysRead = 0,
  kSysWrite = 1,
  kSysOpen = 2,
  kSysClose = 3,
  kSysPoll = 7,
  kSysMmap = 9,
  kSysMprotect = 10,
  kSysMunmap = 11,
  kSysBrk = 12,
  kSysRtSigreturn = 15,
  kSysPread64 = 17,
  kSysPwrite64 = 18,
  kSysReadv = 19,
  kSysWritev = 20,
  kSysPipe = 22,
  kSysSelect = 23,
  kSysMremap = 25,
  kSysMadvise = 28,
  kSysShmat = 30,
  kSysDup = 32,
  kSysDup2 = 33,
  kSysPause = 34,
  kSysNanosleep = 35,
  kSysSendfile = 40,
  kSysConnect = 42,
  kSysAccept = 43,
  kSysSendto = 44,
  kSysRecvfrom = 45,
  kSysSendmsg = 46,
  kSysRecvmsg = 47,
  kSysSocketpair = 53,
  kSysClone = 56,
  kSysFork = 57,
  kSysVfork = 58,
  kSysExit = 60,
  kSysWait4 = 61,
  kSysKill = 62,
  kSysSemop = 65,
  kSysMsgsnd = 69,
  kSysMsgrcv = 70,
  kSysFcntl = 72,
  kSysFlock = 73,
  kSysRtSigtimedwait = 128,
  kSysRtSigsuspend = 130,
  kSysArchPrctl = 158,
  kSysTkill = 200,
  kSysFutex = 202,
  kSysIoGetevents = 208,
  kSysIoSubmit = 209,
  kSysRestartSyscall = 219,
  kSysSemtimedop = 220,
  kSysClockNanosleep = 230,
  kSysExitGroup = 231,
  kSysEpollWait = 232,
  kSysTgkill = 234,
  kSysMqTimedsend = 242,
  kSysMqTimedreceive = 243,
  kSysWaitid = 247,
  kSysOpenat = 257,
  kSysPselect6 = 270,
  kSysPpoll = 271,
  kSysSplice = 275,
  kSysTee = 276,
  kSysVmsplice = 278,
  kSysEpollPwait = 281,
  kSysEventfd = 284,
  kSysAccept4 = 288,
  kSysEventfd2 = 290,
  kSysDup3 = 292,
  kSysPipe2 = 293,
  kSysPreadv = 295,
  kSysPwritev = 296,
  kSysRecvmmsg = 299,
  kSysSendmmsg = 307,
  kSysPreadv2 = 327,
  kSysPwritev2 = 328,
  kSysIoPgetevents = 333,
  kSysIoUringSetup = 425,
  kSysIoUringEnter = 426,
  kSysClone3 = 435,
  kSysCloseRange = 436,
  kSysOpenat2 = 437,
  kSysPidfdGetfd = 438,
  kSysEpollPwait2 = 441,
  kSysFutexWaitv = 449,
};

// Whether the call may sleep until another thread or the outside world acts, so
// that others run between its entry and its return. Its writes to memory then
// happen at the return. Calls that write none are of no matter here.
bool MayBlock(uint64_t number);

// How many low bits of each argument register mean something to the call:
// 0 where the kernel does not look at the argument, which depends on what the
// others ask for (open without O_CREAT has no mode). All 0 for a number that
// Linux 6.1 does not have.
using ArgumentBits = std::array<uint8_t, 6>;
ArgumentBits BitsOfArguments(uint64_t number,
                             const std::array<uint64_t, 6>& args);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_SYSCALLS_H_
