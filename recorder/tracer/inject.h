#ifndef CLEW_RECORDER_TRACER_INJECT_H_
#define CLEW_RECORDER_TRACER_INJECT_H_

#include "common/os/ptrace.h"
#include "common/result.h"
#include "recorder/tracer/shared_memory.h"

namespace clew::tracer {

// Brings the runtime into a program whose threads are all stopped in the
// program, and the first one is not about to receive a signal. When that goes
// on, it runs in the runtime, at the instruction where it is; ptrace(2) is not
// needed any more. The program's memory and registers are as they were, but for
// the mappings of the runtime and its GS base.
//
// kUnsupported: its code is not of 64 bits. kLimit: its memory has no room.
// kSystem: ptrace(2) or what the program is to map is refused.
[[nodiscard]] Status Inject(TracedProcess& process, SharedMemory& shared);

// Lets another of its threads, which is stopped in the program, begin in the
// runtime when it goes on: not before the first one has. Returns its slot.
// Fails with kLimit if there are too many.
[[nodiscard]] Result<uint32_t> Join(TracedProcess& process, Tid thread,
                                    SharedMemory& shared);

// Takes the runtime out of the memory of `thread` again, by calls that this
// makes: of the program's, or of a process that one of its threads has made.
// REQUIRES: it is not about to receive a signal; all threads of the process are
// stopped in the program, with its registers.
[[nodiscard]] Status TakeOut(TracedProcess& process, Tid thread,
                             const SharedMemory& shared);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_INJECT_H_
