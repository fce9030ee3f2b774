#ifndef CLEW_RECORDER_NATIVE_SHARING_PROCESS_H_
#define CLEW_RECORDER_NATIVE_SHARING_PROCESS_H_

#include "common/os/ptrace.h"
#include "common/result.h"
#include "recorder/native/native_state.h"

// A process that has the program's memory, as vfork(2), posix_spawn(3) and
// clone(2) with CLONE_VM make it: what it writes there the program reads. So it
// is a thread of the recording until it ends or runs another program. Its
// descriptors, signals and end are its own.

namespace clew::recorder {

// Whether `call` makes one.
bool MakesSharingProcess(const SyscallCall& call, const GuestMemory& memory);

// `thread` is one, whose first stop was waited for.
[[nodiscard]] Status BeginSharing(NativeState& state, NativeThread& thread);

// It runs another program, which is traced no longer.
[[nodiscard]] Status LetExecutedGo(NativeState& state, NativeThread& thread);

// Stops one that sleeps in the kernel.
[[nodiscard]] Status StopSharing(NativeState& state, NativeThread& thread);

// All that there are go on unrecorded, as if nobody had traced them: before the
// program does, or ends, whose threads may wait for them in vfork.
[[nodiscard]] Status LetSharingGo(NativeState& state);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_SHARING_PROCESS_H_
