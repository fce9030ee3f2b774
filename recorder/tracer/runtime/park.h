#ifndef CLEW_RECORDER_TRACER_RUNTIME_PARK_H_
#define CLEW_RECORDER_TRACER_RUNTIME_PARK_H_

#include <cstdint>

#include "recorder/tracer/runtime/runtime.h"

// Threads of a process that tells what comes in, which runs free, stop where
// the recorder is to look: by a breakpoint, at a boundary, with the program's
// registers in the state. So the recorder finds all of them at their places in
// the program, and can let them go on there without the runtime.

namespace clew::tracer {

// Whether the recorder sees it where it stops.
inline bool Parks(ThreadState& thread) {
  return thread.tell.is_recorded != 0 && thread.tell.is_child == 0 &&
         HasReader(*RuntimeOf(thread).shared);
}

// Whether the recorder wants all threads to stop, and so this one.
inline bool IsToPark(ThreadState& thread) {
  return Parks(thread) && RuntimeOf(thread).shared->is_stopping.load() != 0;
}

// Stops the thread at `addr`, until the recorder lets it go on.
void Park(ThreadState& thread, Parked why, uint64_t addr);

// Likewise if it is to. REQUIRES: the log is empty.
void ParkIfAsked(ThreadState& thread, uint64_t addr);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_PARK_H_
