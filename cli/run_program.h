#ifndef CLEW_CLI_RUN_PROGRAM_H_
#define CLEW_CLI_RUN_PROGRAM_H_

#include <functional>
#include <string>
#include <vector>

#include "common/result.h"

namespace clew::cli {

// Longest output that is kept; the rest is read and dropped.
inline constexpr size_t kCapturedBytesMax = 64 * 1024;

struct ProgramOutput {
  int exit_status = 0;      // 128 + number where a signal ended it
  std::string text;         // stdout, at most kCapturedBytesMax bytes
  std::string errors = {};  // stderr, likewise
};

// Runs a program found by PATH, without a shell, with stdin at /dev/null, and
// waits for its end. Fails with kSystem if it cannot be started.
[[nodiscard]] Result<ProgramOutput> RunProgram(
    const std::vector<std::string>& arguments);

// RunProgram, or what a test shows in its place.
using RunFunction =
    std::function<Result<ProgramOutput>(const std::vector<std::string>&)>;

}  // namespace clew::cli

#endif  // CLEW_CLI_RUN_PROGRAM_H_
