#include "common/check.h"

#include <execinfo.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

#include "common/result.h"

namespace clew {

void CheckFailed(const char* condition, const std::string& message,
                 std::source_location where) {
  fmt::print(stderr, "clew: bug: {}: {} ({}:{})\n", condition, message,
             where.file_name(), where.line());
  std::array<void*, 64> frames;
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  backtrace_symbols_fd(frames.data(), count, STDERR_FILENO);
  std::_Exit(kExitBug);
}

}  // namespace clew
