#ifndef CLEW_RECORDER_TRACER_RUNTIME_PROGRAM_MEMORY_H_
#define CLEW_RECORDER_TRACER_RUNTIME_PROGRAM_MEMORY_H_

#include <cstdint>

// Memory at an address that the program gave to the kernel, which the runtime
// is about to use in its place. The kernel says whether it can be: of what
// cannot, it would have told the program EFAULT. A stack grows to it.

namespace clew::tracer {

bool CanRead(uint64_t addr, uint64_t bytes);
// Changes what is there.
bool CanWrite(uint64_t addr, uint64_t bytes);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_PROGRAM_MEMORY_H_
