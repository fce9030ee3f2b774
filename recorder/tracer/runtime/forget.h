#ifndef CLEW_RECORDER_TRACER_RUNTIME_FORGET_H_
#define CLEW_RECORDER_TRACER_RUNTIME_FORGET_H_

#include <cstdint>

#include "recorder/tracer/runtime/inputs.h"
#include "recorder/tracer/runtime/runtime.h"

// A program has more code over time than the tables and the caches have room
// for, if it makes some as it runs. When they are nearly full, all that was
// translated is forgotten, and they begin anew.
//
// The thread that finds them so waits until no other one is in a fragment, and
// until the recorder has read all that was logged: from there on the numbers in
// a log are those of the new tables.
//
//   this one  no room: its log ends | waits ......... | forgets | begins anew
//   another   ... full: its log ends | waits ................... | begins anew
//   a third   | in a system call ............... returns | waits | begins anew
//   recorder  ........... reads ........... all is read
//
// A thread that is elsewhere (LeaveProgram) has no address in a cache, and no
// number of a fragment or an edge, in its registers or its log: behind a system
// call, as behind a signal, its log begins anew. It comes back by EnterProgram
// alone, which waits meanwhile:
//
//   comes back  is_elsewhere = 0, looks at is_forgetting
//   forgets     is_forgetting = 1, looks at is_elsewhere
//
// One of both sees the other. What is kept back of the room is for what threads
// translate before they come to wait.
//
// Where the recorder wants all threads to stop it is put off: one may be
// stopped in a fragment. Where forked processes use the tables, too, it is not
// done, and the program ends when there is no room.

namespace clew::tracer {

// Whether code may be forgotten while a thread is elsewhere.
inline bool MayForget(const Runtime& runtime) {
  return runtime.shared->in_leaps == 0 && !runtime.shares_tables;
}

// Whether the thread's log ends with each call that it makes, and begins anew
// behind it.
inline bool EndsLogAtCalls(ThreadState& thread) {
  return TellsInputs(thread) || MayForget(RuntimeOf(thread));
}

// Whether a thread forgets all code now.
inline bool IsForgetting(const Runtime& runtime) {
  return runtime.is_forgetting.load() != 0;
}

// Whether a thread has to come to ForgetAt, which needs new code.
[[nodiscard]] bool IsToForget(Runtime& runtime);

// Ends the log, forgets all code or waits until that is done, and lets the
// thread go on at an address of the program. REQUIRES: the thread is there,
// with the program's registers in the state.
void ForgetAt(ThreadState& thread, uint64_t addr);

// The same of a program in leaps: one begins, all threads are between two, and
// all is read.
void ForgetBetweenLeaps(Runtime& runtime);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_FORGET_H_
