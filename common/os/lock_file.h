#ifndef CLEW_COMMON_OS_LOCK_FILE_H_
#define CLEW_COMMON_OS_LOCK_FILE_H_

#include <chrono>
#include <string>

#include "common/os/fd.h"
#include "common/result.h"

namespace clew {

// Takes the exclusive lock (flock(2)) of the file at `path`, which is created
// with mode 0600 if it is not there. The lock ends with the descriptor and all
// copies of it that children inherited, at the latest when their processes end.
// Returns a closed Fd if another holds it after `wait`. Fails with kSystem if
// the file cannot be opened or locked.
[[nodiscard]] Result<Fd> TryLockFile(
    const std::string& path,
    std::chrono::milliseconds wait = std::chrono::milliseconds(0));

}  // namespace clew

#endif  // CLEW_COMMON_OS_LOCK_FILE_H_
