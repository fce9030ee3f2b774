#ifndef CLEW_RECORDER_PERF_SYSFS_H_
#define CLEW_RECORDER_PERF_SYSFS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.h"
#include "common/units.h"

namespace clew::recorder::perf {

// The first line of a small file of the kernel's; nullopt where there is none.
std::optional<std::string> FirstLine(const std::string& path);

inline constexpr uint32_t kCoresMax = 1 << 14;

// The kernel's list format, "0-3,8" (Documentation/admin-guide/cputopology),
// in ascending order. kCorruptInput: no such list, or a core from kCoresMax on.
[[nodiscard]] Result<std::vector<CoreId>> ParseCoreList(std::string_view text);

// The CPUs that are online, from <sys>/devices/system/cpu/online.
[[nodiscard]] Result<std::vector<CoreId>> OnlineCores(const std::string& sys);

}  // namespace clew::recorder::perf

#endif  // CLEW_RECORDER_PERF_SYSFS_H_
