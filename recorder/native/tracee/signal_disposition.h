#ifndef CLEW_RECORDER_NATIVE_TRACEE_SIGNAL_DISPOSITION_H_
#define CLEW_RECORDER_NATIVE_TRACEE_SIGNAL_DISPOSITION_H_

#include <cstdint>

#include "common/os/ptrace.h"
#include "common/units.h"
#include "recorder/qemu/calls/syscall_effects.h"

namespace clew::recorder {

enum class Disposition : uint8_t { kHandled, kIgnored, kStops, kEnds };

// Of a signal to that thread.
Disposition DispositionOf(Tid thread, int signal);

// As procfs tells it, a bit each, from signal 1 on.
uint64_t SignalsBlockedBy(Tid thread);

// Whether nothing would have come of the signal if nobody traced the process
// (what stops a process counts as nothing): it is ignored, and the thread that
// it was sent to does not block it, which is taken to be the first one. The
// kernel drops such a signal as it is sent; where it is traced, one of the
// threads is woken up for it, and its call interrupted (prepare_signal in
// kernel/signal.c).
bool IsDropped(const TracedProcess& process, Tid thread, int signal);
// The same where it is known which signals the first thread blocks.
bool IsDropped(Tid thread, int signal, uint64_t mask_of_first);

// Whether the call, which `process` makes, sends SIGKILL to itself, or to its
// group: nothing can be recorded behind it.
bool KillsItself(const SyscallCall& call, int32_t process);

// Whether a signal that is not dropped is pending, and will be delivered when
// the thread goes on, if no other thread takes it first.
bool IsSignalDue(const TracedProcess& process, Tid thread);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_TRACEE_SIGNAL_DISPOSITION_H_
