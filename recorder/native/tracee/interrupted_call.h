#ifndef CLEW_RECORDER_NATIVE_TRACEE_INTERRUPTED_CALL_H_
#define CLEW_RECORDER_NATIVE_TRACEE_INTERRUPTED_CALL_H_

#include "common/os/ptrace.h"
#include "common/result.h"
#include "common/units.h"

namespace clew::recorder {

// Brings a thread whose system call a stop of ptrace interrupted back to the
// SYSCALL, so that the call is made once more; with what is left of its time
// limit if `with_time_left`. A thread that is in no such call stays as it is.
// REQUIRES: it is stopped, and about to receive no signal but one that
// would have been dropped.
//
// The kernel knows what is left, and goes on by restart_syscall(2). The
// registers of a thread that is stopped once more in it, as after a debugger
// was there, do not tell which call it is, but where the thread waited does.
// kUnsupported: it was just about to.
[[nodiscard]] Status RewindInterruptedCall(TracedProcess& process, Tid thread,
                                           bool with_time_left);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_TRACEE_INTERRUPTED_CALL_H_
