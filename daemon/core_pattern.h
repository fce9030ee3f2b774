#ifndef CLEW_DAEMON_CORE_PATTERN_H_
#define CLEW_DAEMON_CORE_PATTERN_H_

#include <string>

#include "common/file.h"
#include "common/result.h"
#include "daemon/paths.h"

namespace clew::daemon {

// kernel.core_pattern (core(5)): clew-core-handler there, and what was there
// before kept in paths.core_pattern_before, to which the handler passes every
// core dump on.

// What the kernel has; without the newline. kSystem.
[[nodiscard]] Result<std::string> ReadCorePattern(const Paths& paths);
// Whether `pattern` is ours.
bool IsOurPattern(const Paths& paths, const std::string& pattern);

// Keeps the pattern from before, durably, then sets ours. Done already: changes
// nothing. Returns the pattern from before. kSystem: not permitted, or the
// handler is not there.
[[nodiscard]] Result<std::string> InstallCorePattern(FileSystem& files,
                                                     const Paths& paths);
// Puts back what was there, and forgets it. Returns it; empty: ours was not
// there. kInvalidArgument: somebody else has set another one, which stays.
[[nodiscard]] Result<std::string> UninstallCorePattern(FileSystem& files,
                                                       const Paths& paths);

}  // namespace clew::daemon

#endif  // CLEW_DAEMON_CORE_PATTERN_H_
