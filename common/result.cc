#include "common/result.h"

#include <cstring>

namespace clew {

int ExitCodeOf(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return kExitUsage;
    case ErrorCode::kCorruptInput:
      return kExitCorrupt;
    case ErrorCode::kUnsupported:
    case ErrorCode::kSystem:
      return kExitEnvironment;
    case ErrorCode::kLimit:
      return kExitLimit;
  }
  return kExitBug;
}

std::unexpected<Error> SystemError(int sys_errno, std::string_view what) {
  return std::unexpected(
      Error{ErrorCode::kSystem,
            fmt::format("{}: {}", what, std::strerror(sys_errno)), sys_errno});
}

}  // namespace clew
