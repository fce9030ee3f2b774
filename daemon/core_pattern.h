#ifndef CLEW_DAEMON_CORE_PATTERN_H_
#define CLEW_DAEMON_CORE_PATTERN_H_

#include <string>

#include "common/os/file.h"
#include "common/result.h"
#include "daemon/config/paths.h"

namespace clew::daemon {

// kernel.core_pattern (core(5)): clew-core-handler there, and what was there
// before kept in paths.core_pattern_before, to which the handler passes every
// core dump on.

// Returns the kernel's pattern without its newline. Fails with kSystem if it
// cannot be read.
[[nodiscard]] Result<std::string> ReadCorePattern(const Paths& paths);
// Returns whether `pattern` is ours.
bool IsOurPattern(const Paths& paths, const std::string& pattern);

// Stores the present pattern durably, then sets ours. Changes nothing if ours
// is set. Returns the pattern from before. Fails with kSystem if we are not
// permitted or the handler does not exist.
[[nodiscard]] Result<std::string> InstallCorePattern(FileSystem& files,
                                                     const Paths& paths);
// Puts the stored pattern back and forgets it. Returns it, or an empty string
// if ours was not set. Fails with kInvalidArgument if somebody else has set
// another one, which stays.
[[nodiscard]] Result<std::string> UninstallCorePattern(FileSystem& files,
                                                       const Paths& paths);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_CORE_PATTERN_H_
