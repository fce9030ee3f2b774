#ifndef CLEW_RECORDER_TRACER_LEAVE_RUNTIME_H_
#define CLEW_RECORDER_TRACER_LEAVE_RUNTIME_H_

#include <sys/user.h>

#include <cstdint>
#include <functional>

#include "common/os/ptrace.h"
#include "common/result.h"
#include "recorder/tracer/shared_memory.h"

// What a thread that runs free has of the program, and how it goes on without
// the runtime.

namespace clew::tracer {

// Those of the program, at `ip`, of a thread that has `now` in the runtime.
user_regs_struct ProgramRegisters(const ThreadState& state,
                                  user_regs_struct now, uint64_t ip);

// The program's mask of a thread of which the kernel has `mask`.
uint64_t ProgramMask(const SignalState& signals, uint64_t mask);

// Gives a thread that is stopped in the program, with its registers, its
// signals from the kernel again. kUnsupported: the program was ended.
[[nodiscard]] Status LeaveRuntime(TracedProcess& process, Tid thread,
                                  const SharedMemory& shared,
                                  ThreadState& state);

// Lets a forked process, which parks before it begins
// (SharedHeader::tells_inputs), go on in the program without the runtime.
// `undo` is called before that is unmapped, `let_go` once it is all the
// program's: it is to trace it no longer.
[[nodiscard]] Status FreeProcess(TracedProcess& process, Tid child,
                                 SharedMemory& shared,
                                 const std::function<Status()>& undo,
                                 const std::function<Status()>& let_go);

}  // namespace clew::tracer

#endif  // CLEW_RECORDER_TRACER_LEAVE_RUNTIME_H_
