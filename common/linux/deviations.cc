#include "common/linux/deviations.h"

#include <asm/prctl.h>
#include <asm/unistd_64.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

namespace clew {
namespace {

// Which results make a row a deviation.
enum class When : uint8_t {
  kRefused,    // ENOSYS or EINVAL, where the kernel carries it out
  kNoMemory,   // ENOMEM
  kFault,      // EFAULT, though there is memory at the argument
  kNoFault,    // another result than EFAULT, though there is none
  kDone,       // no error, though not all of it was done
  kElsewhere,  // no error, and another address than was asked for
  kLimited,    // no error, and the new soft limit is one
};

// Calls of `number` where argument `selector`, masked, is `value`. With a mask
// of 0, all of them.
struct DeviationRow {
  uint16_t number;
  uint8_t selector;
  uint64_t mask;
  uint64_t value;
  When when;
  std::string_view form;
  std::string_view otherwise;
};

constexpr uint64_t kWholeInt = UINT32_MAX;
constexpr uint64_t kAllCalls = 0;

constexpr uint64_t kHighestSignal = 64;  // SIGRTMAX of the kernel

constexpr std::string_view kNotThere = "it fails";
constexpr std::string_view kNoLimit = "no limit is set";

constexpr DeviationRow kDeviations[] = {
    {__NR_seccomp, 0, kWholeInt, SECCOMP_SET_MODE_STRICT, When::kRefused,
     "seccomp(SECCOMP_SET_MODE_STRICT)", kNotThere},
    {__NR_seccomp, 0, kWholeInt, SECCOMP_SET_MODE_FILTER, When::kRefused,
     "seccomp(SECCOMP_SET_MODE_FILTER)", kNotThere},
    {__NR_prctl, 0, kWholeInt, PR_SET_SECCOMP, When::kRefused,
     "prctl(PR_SET_SECCOMP)", kNotThere},
    {__NR_prctl, 0, kWholeInt, PR_GET_SECCOMP, When::kRefused,
     "prctl(PR_GET_SECCOMP)", kNotThere},
    {__NR_prctl, 0, kWholeInt, PR_SET_TSC, When::kRefused, "prctl(PR_SET_TSC)",
     kNotThere},
    {__NR_prctl, 0, kWholeInt, PR_GET_TSC, When::kRefused, "prctl(PR_GET_TSC)",
     kNotThere},
    {__NR_prctl, 0, kWholeInt, PR_SET_CHILD_SUBREAPER, When::kRefused,
     "prctl(PR_SET_CHILD_SUBREAPER)", kNotThere},
    {__NR_prctl, 0, kWholeInt, PR_GET_CHILD_SUBREAPER, When::kRefused,
     "prctl(PR_GET_CHILD_SUBREAPER)", kNotThere},
    {__NR_prctl, 0, kWholeInt, PR_GET_TID_ADDRESS, When::kRefused,
     "prctl(PR_GET_TID_ADDRESS)", kNotThere},
    {__NR_prctl, 0, kWholeInt, PR_SET_SYSCALL_USER_DISPATCH, When::kRefused,
     "prctl(PR_SET_SYSCALL_USER_DISPATCH)", kNotThere},
    {__NR_keyctl, 0, kAllCalls, 0, When::kRefused, "keyctl", kNotThere},
    {__NR_add_key, 0, kAllCalls, 0, When::kRefused, "add_key", kNotThere},
    {__NR_request_key, 0, kAllCalls, 0, When::kRefused, "request_key",
     kNotThere},
    {__NR_perf_event_open, 0, kAllCalls, 0, When::kRefused, "perf_event_open",
     kNotThere},
    {__NR_userfaultfd, 0, kAllCalls, 0, When::kRefused, "userfaultfd",
     kNotThere},
    {__NR_process_vm_readv, 0, kAllCalls, 0, When::kRefused, "process_vm_readv",
     kNotThere},
    {__NR_process_vm_writev, 0, kAllCalls, 0, When::kRefused,
     "process_vm_writev", kNotThere},
    {__NR_get_mempolicy, 0, kAllCalls, 0, When::kRefused, "get_mempolicy",
     kNotThere},
    {__NR_fanotify_init, 0, kAllCalls, 0, When::kRefused, "fanotify_init",
     kNotThere},
    {__NR_ptrace, 0, kAllCalls, 0, When::kRefused, "ptrace", kNotThere},
    {__NR_kill, 1, kWholeInt, kHighestSignal, When::kRefused, "kill(SIGRTMAX)",
     kNotThere},
    {__NR_kill, 1, kWholeInt, kHighestSignal - 1, When::kRefused,
     "kill(SIGRTMAX - 1)", kNotThere},
    {__NR_tgkill, 2, kWholeInt, kHighestSignal, When::kRefused,
     "tgkill(SIGRTMAX)", kNotThere},
    {__NR_tgkill, 2, kWholeInt, kHighestSignal - 1, When::kRefused,
     "tgkill(SIGRTMAX - 1)", kNotThere},
    {__NR_mremap, 1, UINT64_MAX, 0, When::kNoMemory, "mremap from size 0",
     kNotThere},
    {__NR_epoll_wait, 1, kAllCalls, 0, When::kFault,
     "epoll_wait with more room than there is memory", kNotThere},
    {__NR_epoll_pwait, 1, kAllCalls, 0, When::kFault,
     "epoll_pwait with more room than there is memory", kNotThere},
    {__NR_nanosleep, 0, kAllCalls, 0, When::kNoFault,
     "nanosleep with a bad pointer", "it does not fail with EFAULT"},
    {__NR_ioctl, 1, kWholeInt, TIOCGSID, When::kDone, "ioctl(TIOCGSID)",
     "it tells no session"},
    {__NR_mlock2, 2, MLOCK_ONFAULT, MLOCK_ONFAULT, When::kRefused,
     "mlock2(MLOCK_ONFAULT)", kNotThere},
    {__NR_clone, 0, kAllCalls, 0, When::kRefused,
     "clone with flags other than those of pthread_create and fork", kNotThere},
    {__NR_madvise, 2, kWholeInt, MADV_REMOVE, When::kDone,
     "madvise(MADV_REMOVE)", "the memory keeps what it held"},
    {__NR_madvise, 2, kWholeInt, MADV_DONTFORK, When::kDone,
     "madvise(MADV_DONTFORK)", "a child has the memory all the same"},
    {__NR_madvise, 2, kWholeInt, MADV_WIPEONFORK, When::kDone,
     "madvise(MADV_WIPEONFORK)", "a child sees what it held"},
    {__NR_mmap, 3, MAP_FIXED | MAP_FIXED_NOREPLACE, MAP_FIXED_NOREPLACE,
     When::kElsewhere, "mmap(MAP_FIXED_NOREPLACE)",
     "it maps elsewhere where it must fail"},
    {__NR_setrlimit, 0, kWholeInt, RLIMIT_AS, When::kLimited,
     "setrlimit(RLIMIT_AS)", kNoLimit},
    {__NR_setrlimit, 0, kWholeInt, RLIMIT_DATA, When::kLimited,
     "setrlimit(RLIMIT_DATA)", kNoLimit},
    {__NR_prlimit64, 1, kWholeInt, RLIMIT_AS, When::kLimited,
     "prlimit(RLIMIT_AS)", kNoLimit},
    {__NR_prlimit64, 1, kWholeInt, RLIMIT_DATA, When::kLimited,
     "prlimit(RLIMIT_DATA)", kNoLimit},
};

// The new soft limit, which stands first in the structure.
bool SetsALimit(uint64_t number, const std::array<uint64_t, 6>& args,
                const LoadWord& load) {
  const auto limit = load(args[number == __NR_setrlimit ? 1 : 2]);
  return limit && *limit != RLIM_INFINITY;
}

bool IsDeviation(const DeviationRow& row, const std::array<uint64_t, 6>& args,
                 int64_t result, const LoadWord& load) {
  switch (row.when) {
    case When::kRefused:
      return result == -ENOSYS || result == -EINVAL;
    case When::kNoMemory:
      return result == -ENOMEM;
    case When::kFault:
      return result == -EFAULT && load(args[row.selector]);
    case When::kNoFault:
      return result != -EFAULT && !load(args[row.selector]);
    case When::kDone:
      return result >= 0;
    case When::kElsewhere:
      return result >= 0 && static_cast<uint64_t>(result) != args[0];
    case When::kLimited:
      return result >= 0 && SetsALimit(row.number, args, load);
  }
  return false;
}

// Files of procfs that tell of QEMU where they should tell of the program. QEMU
// makes "maps", "stat", "auxv", "cmdline" and "exe" itself.
constexpr std::string_view kOfTheRecorder[] = {
    "status", "task", "fd", "smaps", "statm", "comm", "environ"};

std::string TextAt(uint64_t addr, const LoadWord& load) {
  constexpr size_t kTextMax = 64;
  std::string text;
  while (text.size() < kTextMax) {
    const uint64_t word = load(addr + text.size()).value_or(0);
    for (size_t i = 0; i < sizeof(word); ++i) {
      const char c = static_cast<char>(word >> 8 * i & 0xff);
      if (c == 0) {
        return text;
      }
      text.push_back(c);
    }
  }
  return text;
}

// Those that count what the tracer has mapped in the program.
constexpr std::string_view kOfItsMemory[] = {"status", "smaps", "smaps_rollup",
                                             "statm"};

// Of a call that opened one of `files`.
std::optional<std::string> DeviationOfOpen(
    uint64_t number, const std::array<uint64_t, 6>& args, int64_t result,
    std::span<const std::string_view> files, const LoadWord& load) {
  constexpr std::string_view kOwn = "/proc/self/";
  if (result < 0 || (number != __NR_open && number != __NR_openat)) {
    return std::nullopt;
  }
  const std::string text = TextAt(args[number == __NR_open ? 0 : 1], load);
  return text.starts_with(kOwn) &&
                 std::ranges::count(files, text.substr(kOwn.size())) > 0
             ? std::optional(fmt::format("{}: it tells of the recorder", text))
             : std::nullopt;
}

}  // namespace

std::optional<std::string> DeviationOf(uint64_t number,
                                       const std::array<uint64_t, 6>& args,
                                       int64_t result, const LoadWord& load) {
  if (auto opened =
          DeviationOfOpen(number, args, result, kOfTheRecorder, load)) {
    return opened;
  }
  const auto* const row =
      std::ranges::find_if(kDeviations, [&](const DeviationRow& each) {
        return each.number == number &&
               (args[each.selector] & each.mask) == each.value &&
               IsDeviation(each, args, result, load);
      });
  if (row == std::end(kDeviations)) {
    return std::nullopt;
  }
  return fmt::format("{}: {}", row->form, row->otherwise);
}

std::string DeviationOfRobustList() {
  return "set_robust_list for a list of its own: it fails";
}

std::string DeviationOfVforkEnd() {
  return "vfork: what a child writes before it ends is not seen";
}

std::optional<std::string> DeviationOfGsBase(
    uint64_t number, const std::array<uint64_t, 6>& args) {
  if (number != __NR_arch_prctl) {
    return std::nullopt;
  }
  switch (args[0]) {
    case ARCH_SET_GS:
      return fmt::format("arch_prctl(ARCH_SET_GS): {}", kNotThere);
    case ARCH_GET_GS:
      return fmt::format("arch_prctl(ARCH_GET_GS): {}", kNotThere);
    default:
      return std::nullopt;
  }
}

std::optional<std::string> DeviationOfMemoryFile(
    uint64_t number, const std::array<uint64_t, 6>& args, int64_t result,
    const LoadWord& load) {
  return DeviationOfOpen(number, args, result, kOfItsMemory, load);
}

std::optional<std::string> DeviationOfMxcsr(uint32_t mxcsr) {
  constexpr uint32_t kAllMasked = 0x1f80;  // Intel SDM vol. 1, "MXCSR Register"
  return (mxcsr & kAllMasked) == kAllMasked
             ? std::nullopt
             : std::optional<std::string>(
                   "LDMXCSR that unmasks exceptions: none is raised");
}

std::string DeviationOfX87Status() {
  return "FNSTSW: no fault of the x87's stack is told";
}

// A circle of its held mutexes, through the head, which points to itself where
// there are none.
std::optional<std::string> DeviationOfThreadEnd(uint64_t list,
                                                const LoadWord& load) {
  const auto first = list == 0 ? std::nullopt : load(list);
  if (!first || *first == 0 || *first == list) {
    return std::nullopt;
  }
  return "set_robust_list: nobody is told that a thread ended with a robust "
         "mutex";
}

std::string DeviationOfAbsentCall(std::string_view name) {
  return fmt::format("{}: {}", name, kNotThere);
}

std::string StrictRefusal(std::string_view deviation) {
  return fmt::format(
      "the recorder carries out otherwise than the kernel: {}; without "
      "--strict the run is recorded all the same",
      deviation);
}

std::string RecordersDoubt(std::span<const std::string> deviations) {
  return deviations.empty()
             ? ""
             : fmt::format(
                   "may be the recorder's: it carries out otherwise than the "
                   "kernel: {}",
                   fmt::join(deviations, "; "));
}

}  // namespace clew
