#include "common/linux/argument_bits.h"

#include <asm/unistd_64.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <string_view>

#include "common/linux/futex_command.h"
#include "common/linux/request_table.h"
#include "common/linux/syscall_table.h"

namespace clew {
namespace {

constexpr uint64_t kAnyBit = ~uint64_t{0};
constexpr uint64_t kLow32 = UINT32_MAX;
constexpr uint64_t kFutexCommand =
    static_cast<uint32_t>(FutexCommand(UINT64_MAX));

// Another signature (SyscallRow::arguments) of `number`, where argument
// `selector` masked by `mask` is `value`. The first row that fits counts, after
// that of a request (request_table.h).
struct Variant {
  uint16_t number;
  uint8_t selector;
  uint64_t mask;
  uint64_t value;
  std::string_view arguments;
};

// Sources: linux/futex.h, and the manual pages mmap(2), futex(2),
// clock_nanosleep(2), epoll_ctl(2) and waitid(2).
constexpr Variant kVariants[] = {
    {__NR_mmap, 3, MAP_ANONYMOUS, MAP_ANONYMOUS, "llii-l"},
    {__NR_futex, 1, kFutexCommand, FUTEX_WAIT, "liil"},
    {__NR_futex, 1, kFutexCommand, FUTEX_WAKE, "lii"},
    {__NR_futex, 1, kFutexCommand, FUTEX_REQUEUE, "liiil"},
    {__NR_futex, 1, kFutexCommand, FUTEX_CMP_REQUEUE, "liiili"},
    {__NR_futex, 1, kFutexCommand, FUTEX_WAKE_OP, "liiili"},
    {__NR_futex, 1, kFutexCommand, FUTEX_LOCK_PI, "li-l"},
    {__NR_futex, 1, kFutexCommand, FUTEX_UNLOCK_PI, "li"},
    {__NR_futex, 1, kFutexCommand, FUTEX_TRYLOCK_PI, "li"},
    {__NR_futex, 1, kFutexCommand, FUTEX_WAIT_BITSET, "liil-i"},
    {__NR_futex, 1, kFutexCommand, FUTEX_WAKE_BITSET, "lii--i"},
    {__NR_futex, 1, kFutexCommand, FUTEX_CMP_REQUEUE_PI, "liiili"},
    {__NR_futex, 1, kFutexCommand, FUTEX_LOCK_PI2, "li-l"},
    {__NR_clock_nanosleep, 1, TIMER_ABSTIME, TIMER_ABSTIME, "iil"},
    {__NR_epoll_ctl, 1, kLow32, EPOLL_CTL_DEL, "iii"},
    {__NR_waitid, 0, kLow32, P_ALL, "i-lil"},
    // Requests that have no row: of terminals, of sockets, and those that may
    // have no argument; options of prctl and operations of keyctl whose
    // arguments are not known; of the whole set of semaphores.
    {__NR_ioctl, 1, 0xffffff00, 0x5400, "iil"},
    {__NR_ioctl, 1, 0xffffff00, 0x8900, "iil"},
    {__NR_ioctl, 1, 0, 0, "ii"},
    {__NR_prctl, 0, 0, 0, "i"},
    {__NR_keyctl, 0, 0, 0, "i"},
    {__NR_semctl, 2, 0, 0, "i-il"},
};

// Argument `argument` of `number` means something only where argument
// `selector` has a bit of `mask`.
struct Condition {
  uint16_t number;
  uint8_t argument;
  uint8_t selector;
  uint64_t mask;
};

// O_CREAT or O_TMPFILE without its O_DIRECTORY.
constexpr uint64_t kOpenMakes = O_CREAT | (O_TMPFILE & ~O_DIRECTORY);
constexpr uint64_t kCloneParentTid = CLONE_PARENT_SETTID | CLONE_PIDFD;
constexpr uint64_t kCloneChildTid = CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID;
constexpr uint64_t kMremapTo = MREMAP_FIXED | MREMAP_DONTUNMAP;

constexpr Condition kConditions[] = {
    {__NR_open, 2, 1, kOpenMakes},       {__NR_rt_sigprocmask, 0, 1, kAnyBit},
    {__NR_mremap, 4, 3, kMremapTo},      {__NR_accept, 2, 1, kAnyBit},
    {__NR_sendto, 5, 4, kAnyBit},        {__NR_recvfrom, 5, 4, kAnyBit},
    {__NR_clone, 2, 0, kCloneParentTid}, {__NR_clone, 3, 0, kCloneChildTid},
    {__NR_clone, 4, 0, CLONE_SETTLS},    {__NR_mq_open, 2, 1, O_CREAT},
    {__NR_mq_open, 3, 1, O_CREAT},       {__NR_openat, 3, 2, kOpenMakes},
    {__NR_ppoll, 4, 3, kAnyBit},         {__NR_epoll_pwait, 5, 4, kAnyBit},
    {__NR_accept4, 2, 1, kAnyBit},       {__NR_membarrier, 2, 1, kAnyBit},
    {__NR_epoll_pwait2, 5, 4, kAnyBit},
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

}  // namespace

ArgumentBits BitsOfArguments(uint64_t number,
                             const std::array<uint64_t, 6>& args) {
  if (const auto request = FindRequest(number, args)) {
    return BitsOf(std::string_view(request->arguments));
  }
  if (const Variant* const variant = FindVariant(number, args)) {
    return BitsOf(variant->arguments);
  }
  const SyscallRow* const row = FindSyscall(number);
  if (row == nullptr) {
    return {};
  }
  ArgumentBits bits = BitsOf(std::string_view(row->arguments));
  for (const Condition& condition : kConditions) {
    if (condition.number == number &&
        (args[condition.selector] & condition.mask) == 0) {
      bits[condition.argument] = 0;
    }
  }
  return bits;
}

}  // namespace clew
