#include "process/syscalls.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace clew::process {
namespace {

struct Description {
  uint16_t number;
  uint8_t arguments;
  const char* name;
};

// Sorted by number. Source: linux include/linux/syscalls.h, by name.
constexpr Description kCalls[] = {
    {0, 3, "read"},
    {1, 3, "write"},
    {2, 2, "open"},
    {3, 1, "close"},
    {4, 2, "stat"},
    {5, 2, "fstat"},
    {6, 2, "lstat"},
    {7, 3, "poll"},
    {8, 3, "lseek"},
    {9, 6, "mmap"},
    {10, 3, "mprotect"},
    {11, 2, "munmap"},
    {12, 1, "brk"},
    {13, 4, "rt_sigaction"},
    {14, 4, "rt_sigprocmask"},
    {15, 0, "rt_sigreturn"},
    {16, 3, "ioctl"},
    {17, 4, "pread64"},
    {18, 4, "pwrite64"},
    {19, 3, "readv"},
    {20, 3, "writev"},
    {21, 2, "access"},
    {22, 1, "pipe"},
    {23, 5, "select"},
    {24, 0, "sched_yield"},
    {25, 4, "mremap"},
    {26, 3, "msync"},
    {27, 3, "mincore"},
    {28, 3, "madvise"},
    {32, 1, "dup"},
    {33, 2, "dup2"},
    {34, 0, "pause"},
    {35, 2, "nanosleep"},
    {39, 0, "getpid"},
    {41, 3, "socket"},
    {42, 3, "connect"},
    {43, 3, "accept"},
    {44, 6, "sendto"},
    {45, 6, "recvfrom"},
    {46, 3, "sendmsg"},
    {47, 3, "recvmsg"},
    {48, 2, "shutdown"},
    {49, 3, "bind"},
    {50, 2, "listen"},
    {51, 3, "getsockname"},
    {52, 3, "getpeername"},
    {53, 4, "socketpair"},
    {54, 5, "setsockopt"},
    {55, 5, "getsockopt"},
    {56, 5, "clone"},
    {60, 1, "exit"},
    {61, 4, "wait4"},
    {62, 2, "kill"},
    {63, 1, "uname"},
    {72, 2, "fcntl"},
    {74, 1, "fsync"},
    {75, 1, "fdatasync"},
    {77, 2, "ftruncate"},
    {79, 2, "getcwd"},
    {80, 1, "chdir"},
    {82, 2, "rename"},
    {83, 2, "mkdir"},
    {87, 1, "unlink"},
    {89, 3, "readlink"},
    {90, 2, "chmod"},
    {91, 2, "fchmod"},
    {92, 3, "chown"},
    {93, 3, "fchown"},
    {96, 2, "gettimeofday"},
    {97, 2, "getrlimit"},
    {98, 2, "getrusage"},
    {99, 1, "sysinfo"},
    {102, 0, "getuid"},
    {104, 0, "getgid"},
    {107, 0, "geteuid"},
    {108, 0, "getegid"},
    {110, 0, "getppid"},
    {128, 4, "rt_sigtimedwait"},
    {130, 2, "rt_sigsuspend"},
    {131, 2, "sigaltstack"},
    {132, 2, "utime"},
    {157, 1, "prctl"},
    {158, 2, "arch_prctl"},
    {160, 2, "setrlimit"},
    {186, 0, "gettid"},
    {201, 1, "time"},
    {202, 3, "futex"},
    {203, 3, "sched_setaffinity"},
    {204, 3, "sched_getaffinity"},
    {217, 3, "getdents64"},
    {218, 1, "set_tid_address"},
    {221, 4, "fadvise64"},
    {228, 2, "clock_gettime"},
    {229, 2, "clock_getres"},
    {230, 4, "clock_nanosleep"},
    {231, 1, "exit_group"},
    {232, 4, "epoll_wait"},
    {233, 4, "epoll_ctl"},
    {234, 3, "tgkill"},
    {235, 2, "utimes"},
    {247, 5, "waitid"},
    {257, 3, "openat"},
    {262, 4, "newfstatat"},
    {263, 3, "unlinkat"},
    {267, 4, "readlinkat"},
    {269, 3, "faccessat"},
    {270, 6, "pselect6"},
    {271, 5, "ppoll"},
    {273, 2, "set_robust_list"},
    {280, 4, "utimensat"},
    {281, 6, "epoll_pwait"},
    {285, 4, "fallocate"},
    {288, 4, "accept4"},
    {290, 2, "eventfd2"},
    {291, 1, "epoll_create1"},
    {292, 3, "dup3"},
    {293, 2, "pipe2"},
    {302, 4, "prlimit64"},
    {309, 3, "getcpu"},
    {318, 3, "getrandom"},
    {332, 5, "statx"},
    {334, 4, "rseq"},
    {435, 2, "clone3"},
    {439, 4, "faccessat2"},
};
static_assert(std::ranges::is_sorted(kCalls, {}, &Description::number));

const Description* Find(uint64_t number) {
  const auto* const found =
      std::ranges::lower_bound(kCalls, number, {}, &Description::number);
  return found != std::end(kCalls) && found->number == number ? found : nullptr;
}

}  // namespace

bool MayBlock(uint64_t number) {
  static constexpr std::array<uint64_t, 21> kBlocking = {
      kSysRead,         kSysPoll,           kSysReadv,          kSysSelect,
      kSysPause,        kSysNanosleep,      kSysAccept,         kSysRecvfrom,
      kSysRecvmsg,      kSysWait4,          kSysRtSigtimedwait, kSysFutex,
      kSysRtSigsuspend, kSysClockNanosleep, kSysEpollWait,      kSysWaitid,
      kSysPselect6,     kSysPpoll,          kSysEpollPwait,     kSysAccept4,
      kSysPread64};
  return std::ranges::find(kBlocking, number) != kBlocking.end();
}

unsigned ArgumentCount(uint64_t number) {
  const Description* const found = Find(number);
  return found == nullptr ? 0 : found->arguments;
}

std::string SyscallName(uint64_t number) {
  const Description* const found = Find(number);
  return found == nullptr ? fmt::format("syscall {}", number) : found->name;
}

}  // namespace clew::process
