#ifndef CLEW_RECORDER_TRACER_RUNTIME_PARK_H_
#define CLEW_RECORDER_TRACER_RUNTIME_PARK_H_

#include <cstdint>

#include "recorder/tracer/runtime/runtime.h"

// Threads of a process that tells what comes in, which runs free, park where
// the recorder is to look: at a boundary, with the program's registers in the
// state. So the recorder finds all of them at their places in the program, has
// them make calls for it there, and can let them go on without the runtime.
//
// They wait in the kernel for what they have to do (ThreadSlot::order), not
// for a tracer: where the recorder is killed they see that, and go on.
//
//   thread     parks | kWait ......  | makes it | kWait ... | goes on
//   recorder         | kMakeCall ^              | kGoOn   ^

namespace clew::tracer {

// Whether it is of the process that is recorded; the recorder may be gone.
inline bool IsRecorded(const ThreadState& thread) {
  return thread.tell.is_recorded != 0 && thread.tell.is_child == 0;
}

// Whether the recorder sees it where it parks.
inline bool Parks(ThreadState& thread) {
  return IsRecorded(thread) && HasReader(*RuntimeOf(thread).shared);
}

// Whether the recorder wants all threads to stop, and so this one.
inline bool IsToPark(ThreadState& thread) {
  return Parks(thread) && RuntimeOf(thread).shared->is_stopping.load() != 0;
}

// Stops the thread at `addr`, until the recorder lets it go on. Returns false
// if it was killed before that.
bool Park(ThreadState& thread, Parked why, uint64_t addr);

// Likewise if it is to. REQUIRES: the log is empty.
void ParkIfAsked(ThreadState& thread, uint64_t addr);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_PARK_H_
