// Also keeps the headers without code of their own compiling on their own.
#include <array>
#include <cstddef>

#include "common/access.h"
#include "common/bundle_facts.h"
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

std::string_view ToString(TriggerKind kind) {
  constexpr std::array<std::string_view, 5> kNames = {
      "unknown", "core dump", "failed unit", "hang", "request"};
  static_assert(kNames.size() == static_cast<size_t>(TriggerKind::kLast) + 1);
  return kNames.at(static_cast<size_t>(kind));
}

}  // namespace clew
