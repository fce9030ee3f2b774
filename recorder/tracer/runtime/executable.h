#ifndef CLEW_RECORDER_TRACER_RUNTIME_EXECUTABLE_H_
#define CLEW_RECORDER_TRACER_RUNTIME_EXECUTABLE_H_

#include <cstdint>

#include "recorder/tracer/runtime/runtime.h"

namespace clew::tracer {

// Returns the end of the memory from `addr` on that can be read and executed;
// `addr` where it cannot. Asks the kernel if it does not know.
[[nodiscard]] uint64_t ExecutableEnd(Runtime& runtime, uint64_t addr);

// Forgets what the kernel said: mappings have changed.
void ForgetExecutable(Runtime& runtime);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_EXECUTABLE_H_
