#ifndef CLEW_RECORDER_QEMU_CALLS_REFUSED_USES_H_
#define CLEW_RECORDER_QEMU_CALLS_REFUSED_USES_H_

#include "common/result.h"
#include "recorder/qemu/calls/syscall_effects.h"
#include "recorder/qemu/guest_memory.h"

namespace clew::recorder {

// At a call that the recorder knows. kUnsupported: it cannot record what this
// one asks for; the message says what, and what to do.
[[nodiscard]] Status RefuseUse(const SyscallCall& call,
                               const GuestMemory& memory);

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_QEMU_CALLS_REFUSED_USES_H_
