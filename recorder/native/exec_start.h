#ifndef CLEW_RECORDER_NATIVE_EXEC_START_H_
#define CLEW_RECORDER_NATIVE_EXEC_START_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/result.h"

namespace clew::recorder {

// Describes a program that others record, at its first instruction, as start.pb
// at `path`. `process` is a child of this process that waits for what `go` does
// to execute it; it is traced until it is described, and runs then. It has no
// vDSO.
//
// Returns its wait status if it ended before: its execve failed, or it was
// killed. kUnsupported: the program is not of 64 bits. kSystem: ptrace(2) is
// refused, or the file cannot be written.
[[nodiscard]] Result<std::optional<int>> DescribeAtExec(
    int32_t process, const std::function<void()>& go, const std::string& path);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_EXEC_START_H_
