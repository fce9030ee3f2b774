#ifndef CLEW_RECORDER_TRACER_INJECT_H_
#define CLEW_RECORDER_TRACER_INJECT_H_

#include "common/os/ptrace.h"
#include "common/result.h"
#include "recorder/tracer/shared_memory.h"

namespace clew::tracer {

// Brings the runtime into a program that is stopped at its first instruction,
// with one thread. When that goes on, it runs in the runtime, at the program's
// first instruction; ptrace(2) is not needed any more. The program's memory and
// registers are as they were, but for the mappings of the runtime and its GS
// base.
//
// kUnsupported: its code is not of 64 bits. kLimit: its memory has no room.
// kSystem: ptrace(2) or what the program is to map is refused.
[[nodiscard]] Status Inject(TracedProcess& process, SharedMemory& shared);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_INJECT_H_
