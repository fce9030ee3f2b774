#ifndef CLEW_RECORDER_TRACER_CHANGED_CODE_H_
#define CLEW_RECORDER_TRACER_CHANGED_CODE_H_

#include <sys/mman.h>
#include <sys/syscall.h>

#include <array>
#include <cstdint>
#include <span>

namespace clew::tracer {

struct ChangedRange {
  uint64_t addr = 0;
  uint64_t bytes = 0;  // 0: there is none
};

// Where a system call that succeeded may have put other code. Not what mmap
// maps where nothing was.
inline std::array<ChangedRange, 2> ChangedBy(
    uint64_t number, std::span<const uint64_t, 6> arguments) {
  const ChangedRange first = {arguments[0], arguments[1]};
  switch (number) {
    case SYS_munmap:
    case SYS_mprotect:
    case SYS_pkey_mprotect:
      return {first};
    case SYS_mmap:
      return {(arguments[3] & MAP_FIXED) != 0 ? first : ChangedRange()};
    case SYS_mremap:
      return {first, (arguments[3] & MREMAP_FIXED) != 0
                         ? ChangedRange{arguments[4], arguments[2]}
                         : ChangedRange()};
    default:
      return {};
  }
}

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_CHANGED_CODE_H_
