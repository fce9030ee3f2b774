#ifndef CLEW_RECORDER_START_TAP_H_
#define CLEW_RECORDER_START_TAP_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "common/result.h"

namespace clew::recorder {

// Describes what a replay of a recording begins with, of a program that perf
// records.
//
//   Launch, or { Stop, LetGo, GiveBack }
class StartTap {
 public:
  virtual ~StartTap() = default;
  // Lets `process`, which is held before its execve, go on by calling `go`, and
  // describes it at its first instruction. Returns its wait status if it ended
  // before.
  [[nodiscard]] virtual Result<std::optional<int>> Launch(
      int32_t process, const std::function<void()>& go) = 0;
  // Stops a process that runs, and describes it. An error: it goes on as it
  // was.
  [[nodiscard]] virtual Status Stop(int32_t process) = 0;
  // Lets it run.
  [[nodiscard]] virtual Status LetGo() = 0;
  // Undoes what was done to it so that it can be recorded. REQUIRES: it has not
  // ended.
  [[nodiscard]] virtual Status GiveBack() = 0;
};

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_START_TAP_H_
