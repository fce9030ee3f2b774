#ifndef CLEW_RECORDER_TRACER_FREE_FREE_START_H_
#define CLEW_RECORDER_TRACER_FREE_FREE_START_H_

#include "common/result.h"
#include "recorder/native/native_state.h"
#include "recorder/tracer/shared_memory.h"

namespace clew::tracer {

// Brings the runtime into a program whose threads, those of `state`, are all
// stopped there, at its first instruction or attached to. When one goes on, it
// begins in the runtime, with its signals waiting until then; the others not
// before the first one has, which takes over the program's handlers.
//
// kUnsupported: the program cannot run free (the message says why). Fails
// besides as Inject does. The threads have then what they had.
[[nodiscard]] Status StartFree(recorder::NativeState& state,
                               SharedMemory& shared);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_FREE_FREE_START_H_
