#ifndef CLEW_PROCESS_SYSCALLS_H_
#define CLEW_PROCESS_SYSCALLS_H_

#include <cstdint>
#include <string>

namespace clew::process {

// x86-64 system call numbers that the process model treats specially.
// Source: linux arch/x86/entry/syscalls/syscall_64.tbl.
enum SyscallNumber : uint64_t {
  kSysRead = 0,
  kSysWrite = 1,
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
  kSysSelect = 23,
  kSysMremap = 25,
  kSysPause = 34,
  kSysNanosleep = 35,
  kSysAccept = 43,
  kSysSendto = 44,
  kSysRecvfrom = 45,
  kSysSendmsg = 46,
  kSysRecvmsg = 47,
  kSysClone = 56,
  kSysExit = 60,
  kSysWait4 = 61,
  kSysKill = 62,
  kSysRtSigtimedwait = 128,
  kSysRtSigsuspend = 130,
  kSysArchPrctl = 158,
  kSysTkill = 200,
  kSysFutex = 202,
  kSysClockNanosleep = 230,
  kSysExitGroup = 231,
  kSysEpollWait = 232,
  kSysTgkill = 234,
  kSysWaitid = 247,
  kSysPselect6 = 270,
  kSysPpoll = 271,
  kSysEpollPwait = 281,
  kSysAccept4 = 288,
  kSysClone3 = 435,
};

// Whether the call may sleep until another thread or the outside world acts, so
// that others run between its entry and its return.
bool MayBlock(uint64_t number);

// How many argument registers mean something whatever their values (an optional
// one at the end is left out); 0 where the call is not known here, so that
// nothing is compared.
unsigned ArgumentCount(uint64_t number);

// "futex", "read"; "syscall 999" for a number without a name here.
std::string SyscallName(uint64_t number);

}  // namespace clew::process

#endif  // CLEW_PROCESS_SYSCALLS_H_
