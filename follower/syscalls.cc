#include "follower/syscalls.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "common/syscalls.h"

namespace clew::follower {
namespace {

constexpr uint64_t kAnyBit = ~uint64_t{0};
constexpr uint64_t kLow32 = 0xffffffff;

// Another signature (SyscallPrototype::arguments) of `number`, where argument
// `selector` masked by `mask` is `value`. The first row that fits counts.
struct Variant {
  uint16_t number;
  uint8_t selector;
  uint64_t mask;
  uint64_t value;
  std::string_view arguments;
};

// Sources: linux/fcntl.h, asm-generic/ioctls.h, sys/prctl.h, linux/futex.h and
// their manual pages, fcntl(2), ioctl_tty(2), prctl(2), futex(2), mmap(2),
// clock_nanosleep(2), epoll_ctl(2), waitid(2), shmctl(2), semctl(2), msgctl(2).
constexpr Variant kVariants[] = {
    {9, 3, 0x20, 0x20, "llii-l"},        // mmap: MAP_ANONYMOUS
    {16, 1, kLow32, 0x5409, "iii"},      // ioctl: TCSBRK
    {16, 1, kLow32, 0x540a, "iii"},      // TCXONC
    {16, 1, kLow32, 0x540b, "iii"},      // TCFLSH
    {16, 1, kLow32, 0x540c, "ii"},       // TIOCEXCL
    {16, 1, kLow32, 0x540d, "ii"},       // TIOCNXCL
    {16, 1, kLow32, 0x540e, "iii"},      // TIOCSCTTY
    {16, 1, kLow32, 0x541d, "ii"},       // TIOCCONS
    {16, 1, kLow32, 0x5422, "ii"},       // TIOCNOTTY
    {16, 1, kLow32, 0x5425, "iii"},      // TCSBRKP
    {16, 1, kLow32, 0x5427, "ii"},       // TIOCSBRK
    {16, 1, kLow32, 0x5428, "ii"},       // TIOCCBRK
    {16, 1, kLow32, 0x5437, "ii"},       // TIOCVHANGUP
    {16, 1, kLow32, 0x5441, "iii"},      // TIOCGPTPEER
    {16, 1, kLow32, 0x5450, "ii"},       // FIONCLEX
    {16, 1, kLow32, 0x5451, "ii"},       // FIOCLEX
    {16, 1, 0xffffff00, 0x5400, "iil"},  // other requests of terminals
    {16, 1, 0xffffff00, 0x8900, "iil"},  // of sockets
    {31, 1, kLow32, 0, "ii"},            // shmctl: IPC_RMID
    {31, 1, kLow32, 11, "ii"},           // SHM_LOCK
    {31, 1, kLow32, 12, "ii"},           // SHM_UNLOCK
    {66, 2, kLow32, 0, "i-i"},           // semctl: IPC_RMID
    {66, 2, kLow32, 11, "iii"},          // GETPID
    {66, 2, kLow32, 12, "iii"},          // GETVAL
    {66, 2, kLow32, 14, "iii"},          // GETNCNT
    {66, 2, kLow32, 15, "iii"},          // GETZCNT
    {66, 2, kLow32, 16, "iiii"},         // SETVAL
    {66, 2, 0, 0, "i-il"},               // the others are about the whole set
    {71, 1, kLow32, 0, "ii"},            // msgctl: IPC_RMID
    {72, 1, kLow32, 0, "iii"},           // fcntl: F_DUPFD
    {72, 1, kLow32, 1, "ii"},            // F_GETFD
    {72, 1, kLow32, 2, "iii"},           // F_SETFD
    {72, 1, kLow32, 3, "ii"},            // F_GETFL
    {72, 1, kLow32, 4, "iii"},           // F_SETFL
    {72, 1, kLow32, 8, "iii"},           // F_SETOWN
    {72, 1, kLow32, 9, "ii"},            // F_GETOWN
    {72, 1, kLow32, 10, "iii"},          // F_SETSIG
    {72, 1, kLow32, 11, "ii"},           // F_GETSIG
    {72, 1, kLow32, 1024, "iii"},        // F_SETLEASE
    {72, 1, kLow32, 1025, "ii"},         // F_GETLEASE
    {72, 1, kLow32, 1026, "iii"},        // F_NOTIFY
    {72, 1, kLow32, 1030, "iii"},        // F_DUPFD_CLOEXEC
    {72, 1, kLow32, 1031, "iii"},        // F_SETPIPE_SZ
    {72, 1, kLow32, 1032, "ii"},         // F_GETPIPE_SZ
    {72, 1, kLow32, 1033, "iii"},        // F_ADD_SEALS
    {72, 1, kLow32, 1034, "ii"},         // F_GET_SEALS
    {157, 0, kLow32, 1, "ii"},           // prctl: PR_SET_PDEATHSIG
    {157, 0, kLow32, 2, "il"},           // PR_GET_PDEATHSIG
    {157, 0, kLow32, 4, "il"},           // PR_SET_DUMPABLE
    {157, 0, kLow32, 8, "il"},           // PR_SET_KEEPCAPS
    {157, 0, kLow32, 15, "il"},          // PR_SET_NAME
    {157, 0, kLow32, 16, "il"},          // PR_GET_NAME
    {157, 0, kLow32, 22, "il"},          // PR_SET_SECCOMP
    {157, 0, kLow32, 23, "il"},          // PR_CAPBSET_READ
    {157, 0, kLow32, 24, "il"},          // PR_CAPBSET_DROP
    {157, 0, kLow32, 25, "il"},          // PR_GET_TSC
    {157, 0, kLow32, 26, "il"},          // PR_SET_TSC
    {157, 0, kLow32, 29, "il"},          // PR_SET_TIMERSLACK
    {157, 0, kLow32, 36, "il"},          // PR_SET_CHILD_SUBREAPER
    {157, 0, kLow32, 37, "il"},          // PR_GET_CHILD_SUBREAPER
    {157, 0, kLow32, 38, "illll"},       // PR_SET_NO_NEW_PRIVS
    {157, 0, kLow32, 39, "illll"},       // PR_GET_NO_NEW_PRIVS
    {157, 0, kLow32, 41, "illll"},       // PR_SET_THP_DISABLE
    {157, 0, kLow32, 42, "illll"},       // PR_GET_THP_DISABLE
    {157, 0, kLow32, 47, "illll"},       // PR_CAP_AMBIENT
    {157, 0, kLow32, 0x53564d41, "illll"},  // PR_SET_VMA
    {157, 0, kLow32, 0x59616d61, "il"},     // PR_SET_PTRACER
    {157, 0, 0, 0, "i"},           // an option whose arguments are not known
    {202, 1, 0x7f, 0, "liil"},     // futex: FUTEX_WAIT
    {202, 1, 0x7f, 1, "lii"},      // FUTEX_WAKE
    {202, 1, 0x7f, 3, "liiil"},    // FUTEX_REQUEUE
    {202, 1, 0x7f, 4, "liiili"},   // FUTEX_CMP_REQUEUE
    {202, 1, 0x7f, 5, "liiili"},   // FUTEX_WAKE_OP
    {202, 1, 0x7f, 6, "li-l"},     // FUTEX_LOCK_PI
    {202, 1, 0x7f, 7, "li"},       // FUTEX_UNLOCK_PI
    {202, 1, 0x7f, 8, "li"},       // FUTEX_TRYLOCK_PI
    {202, 1, 0x7f, 9, "liil-i"},   // FUTEX_WAIT_BITSET
    {202, 1, 0x7f, 10, "lii--i"},  // FUTEX_WAKE_BITSET
    {202, 1, 0x7f, 12, "liiili"},  // FUTEX_CMP_REQUEUE_PI
    {202, 1, 0x7f, 13, "li-l"},    // FUTEX_LOCK_PI2
    {230, 1, 1, 1, "iil"},         // clock_nanosleep: TIMER_ABSTIME
    {233, 1, kLow32, 2, "iii"},    // epoll_ctl: EPOLL_CTL_DEL
    {247, 0, kLow32, 0, "i-lil"},  // waitid: P_ALL
};

// Argument `argument` of `number` means something only where argument
// `selector` has a bit of `mask`.
struct Condition {
  uint16_t number;
  uint8_t argument;
  uint8_t selector;
  uint64_t mask;
};

// O_CREAT or the kernel's own __O_TMPFILE (asm-generic/fcntl.h).
constexpr uint64_t kOpenMakes = 0100 | 020000000;
// linux/sched.h
constexpr uint64_t kCloneParentTid = 0x00001000 | 0x00100000;
constexpr uint64_t kCloneChildTid = 0x00200000 | 0x01000000;
constexpr uint64_t kCloneSetTls = 0x00080000;
// MREMAP_FIXED or MREMAP_DONTUNMAP (linux/mman.h).
constexpr uint64_t kMremapTo = 2 | 4;
// The size field of requests made by _IOC (asm-generic/ioctl.h). A request
// without one may have no argument.
constexpr uint64_t kIoctlSize = 0x3fff0000;

constexpr Condition kConditions[] = {
    {2, 2, 1, kOpenMakes},        // open: mode
    {14, 0, 1, kAnyBit},          // rt_sigprocmask: how, of a set
    {16, 2, 1, kIoctlSize},       // ioctl
    {25, 4, 3, kMremapTo},        // mremap: new address
    {43, 2, 1, kAnyBit},          // accept: length, of an address
    {44, 5, 4, kAnyBit},          // sendto
    {45, 5, 4, kAnyBit},          // recvfrom
    {56, 2, 0, kCloneParentTid},  // clone
    {56, 3, 0, kCloneChildTid},  {56, 4, 0, kCloneSetTls},
    {240, 2, 1, 0100},  // mq_open: mode and attributes
    {240, 3, 1, 0100},           {257, 3, 2, kOpenMakes},  // openat
    {271, 4, 3, kAnyBit},  // ppoll: size, of a signal set
    {281, 5, 4, kAnyBit},  // epoll_pwait
    {288, 2, 1, kAnyBit},  // accept4
    {324, 2, 1, kAnyBit},  // membarrier: CPU, with a flag
    {441, 5, 4, kAnyBit},  // epoll_pwait2
};

uint8_t BitsOf(char argument) {
  switch (argument) {
    case 'l':
      return 64;
    case 'i':
      return 32;
    case 'h':
      return 16;
    case 'b':
      return 8;
    default:
      return 0;
  }
}

ArgumentBits BitsOf(std::string_view arguments) {
  ArgumentBits bits = {};
  std::ranges::transform(arguments.substr(0, bits.size()), bits.begin(),
                         [](char argument) { return BitsOf(argument); });
  return bits;
}

const Variant* FindVariant(uint64_t number,
                           const std::array<uint64_t, 6>& args) {
  const auto* const found =
      std::ranges::find_if(kVariants, [&](const Variant& variant) {
        return variant.number == number &&
               (args[variant.selector] & variant.mask) == variant.value;
      });
  return found == std::end(kVariants) ? nullptr : found;
}

// Sorted. Besides those that the recorder lets sleep, those that only other
// recorders have.
constexpr uint64_t kBlocking[] = {
    kSysRead,           kSysPoll,           kSysPread64,
    kSysReadv,          kSysSelect,         kSysPause,
    kSysNanosleep,      kSysSendfile,       kSysConnect,
    kSysAccept,         kSysRecvfrom,       kSysRecvmsg,
    kSysWait4,          kSysSemop,          kSysMsgsnd,
    kSysMsgrcv,         kSysFcntl,          kSysFlock,
    kSysRtSigtimedwait, kSysRtSigsuspend,   kSysFutex,
    kSysIoGetevents,    kSysRestartSyscall, kSysSemtimedop,
    kSysClockNanosleep, kSysEpollWait,      kSysMqTimedsend,
    kSysMqTimedreceive, kSysWaitid,         kSysPselect6,
    kSysPpoll,          kSysSplice,         kSysTee,
    kSysVmsplice,       kSysEpollPwait,     kSysAccept4,
    kSysPreadv,         kSysRecvmmsg,       kSysSendmmsg,
    kSysPreadv2,        kSysIoPgetevents,   kSysIoUringEnter,
    kSysEpollPwait2,    kSysFutexWaitv};
static_assert(std::ranges::is_sorted(kBlocking));

}  // namespace

bool MayBlock(uint64_t number) {
  return std::ranges::binary_search(kBlocking, number);
}

ArgumentBits BitsOfArguments(uint64_t number,
                             const std::array<uint64_t, 6>& args) {
  if (const Variant* const variant = FindVariant(number, args)) {
    return BitsOf(variant->arguments);
  }
  const SyscallPrototype* const prototype = FindPrototype(number);
  if (prototype == nullptr) {
    return {};
  }
  ArgumentBits bits = BitsOf(std::string_view(prototype->arguments));
  for (const Condition& condition : kConditions) {
    if (condition.number == number &&
        (args[condition.selector] & condition.mask) == 0) {
      bits[condition.argument] = 0;
    }
  }
  return bits;
}

}  // namespace clew::follower
