#ifndef CLEW_RECORDER_TRACER_RUNTIME_LEAVE_H_
#define CLEW_RECORDER_TRACER_RUNTIME_LEAVE_H_

#include "recorder/tracer/runtime/runtime.h"

namespace clew::tracer {

// The kernel has of the thread, and of its process, what it has natively.
void GiveBack(ThreadState& thread);

// The thread goes on in the program, at `resume`, without the runtime, of which
// nothing but its memory is left, and gives back its slot. REQUIRES: it is
// alone in its process, and SignalsBlocked.
[[noreturn]] void Leave(ThreadState& thread);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_LEAVE_H_
