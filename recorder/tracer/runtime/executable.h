#ifndef CLEW_RECORDER_TRACER_RUNTIME_EXECUTABLE_H_
#define CLEW_RECORDER_TRACER_RUNTIME_EXECUTABLE_H_

#include <cstdint>

#include "recorder/tracer/runtime/runtime.h"

namespace clew::tracer {

// Memory that can be read and executed.
struct Executable {
  uint64_t end = 0;
  // The program can write to some of it, or others can: code there may change
  // without a system call.
  bool is_writable = false;
};

// Returns what there is from `addr` on; `end` is `addr` if that cannot be
// executed. Asks the kernel if it does not know.
[[nodiscard]] Executable ExecutableFrom(Runtime& runtime, uint64_t addr);

// Forgets what the kernel said: mappings have changed.
void ForgetExecutable(Runtime& runtime);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_EXECUTABLE_H_
