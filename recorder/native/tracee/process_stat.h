#ifndef CLEW_RECORDER_NATIVE_TRACEE_PROCESS_STAT_H_
#define CLEW_RECORDER_NATIVE_TRACEE_PROCESS_STAT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.h"

namespace clew::recorder {

// Fields of /proc/pid/stat, by their numbers in proc(5).
inline constexpr int kStatFlags = 9;          // include/linux/sched.h, PF_*
inline constexpr int kStatStartOfStack = 28;  // of argc
inline constexpr int kStatStartOfHeap = 47;   // where the heap begins

// Returns a field of `stat`, which is what that file tells of a process.
// kUnsupported: the kernel does not tell it.
[[nodiscard]] Result<uint64_t> StatField(const std::string& stat, int field);

// Returns an entry (AT_*) of `auxv`, which is what /proc/pid/auxv has of a
// process; 0: it has none.
[[nodiscard]] uint64_t AuxValue(std::string_view auxv, uint64_t type);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_TRACEE_PROCESS_STAT_H_
