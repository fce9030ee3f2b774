// Also keeps the headers without code of their own compiling on their own.
#include "common/access.h"
#include "common/inputs.h"
#include "common/schedule.h"
#include "common/stream.h"
#include "common/units.h"

namespace clew {

std::string_view ToString(FailureKind kind) {
  switch (kind) {
    case FailureKind::kNone:
      return "none";
    case FailureKind::kSignal:
      return "signal";
    case FailureKind::kExit:
      return "exit";
    case FailureKind::kHang:
      return "hang";
    case FailureKind::kTimeLimit:
      return "time limit";
  }
  return "unknown";
}

}  // namespace clew
