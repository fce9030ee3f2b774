#ifndef CLEW_RECORDER_TRACER_RUNTIME_VERSIONS_H_
#define CLEW_RECORDER_TRACER_RUNTIME_VERSIONS_H_

#include <cstdint>

#include "recorder/tracer/runtime/runtime.h"

// Code that changes, by a system call or as a check finds (code_check.h). What
// was translated of it is dropped, and the version of
// the process counted up. Each batch of a log has one version
// (../shared_layout.h), so a thread has to take the new one before it runs what
// was translated since:
//
//   it enters the runtime by an edge   its log begins anew at the target
//   by an indirect transfer            behind the record of that
//   its log is full                    behind it
//   it comes to code that has changed  its log begins anew there
//   behind a system call               its log begins anew there
//
// It runs such a fragment without entering the runtime only by a jump that
// another thread linked. So an edge is not linked to a fragment of a version
// that a thread may not have taken yet: until then whoever comes there enters
// the runtime. A thread in a system call has left all code, and takes the
// version behind it.

namespace clew::tracer {

// Lets Drop find a fragment.
void NotePage(Runtime& runtime, uint32_t fragment);

// Forgets what was translated of [begin, end): control that comes there from
// another fragment enters the runtime. A thread that is in such a fragment runs
// to its end. REQUIRES: the caller has the runtime's lock.
void Drop(Runtime& runtime, uint64_t begin, uint64_t end);
// Likewise of code of a fragment whose check failed (code_check.h).
void DropStale(Runtime& runtime, uint32_t fragment);

// Whether code has changed since the thread took a version.
inline bool IsBehind(ThreadState& thread) {
  return thread.version != RuntimeOf(thread).version.load();
}
// Lets the next batch of the thread's log have the version of now.
inline void TakeVersion(ThreadState& thread) {
  __atomic_store_n(&thread.version, RuntimeOf(thread).version.load(),
                   __ATOMIC_RELEASE);
}

// Whether each thread that runs the program has taken `version` or a later one.
// REQUIRES: the caller has the runtime's lock.
bool IsTakenByAll(Runtime& runtime, uint64_t version);

// The thread is in a system call, or has not begun.
inline void LeaveProgram(ThreadState& thread) {
  __atomic_store_n(&thread.is_elsewhere, 1, __ATOMIC_RELEASE);
}
// The thread is about to run the program, once no code is being forgotten
// (forget.h); then it looks whether it is behind.
void EnterProgram(ThreadState& thread);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_RUNTIME_VERSIONS_H_
