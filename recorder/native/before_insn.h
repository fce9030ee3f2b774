#ifndef CLEW_RECORDER_NATIVE_BEFORE_INSN_H_
#define CLEW_RECORDER_NATIVE_BEFORE_INSN_H_

#include <cstdint>
#include <functional>

#include "common/os/ptrace.h"
#include "common/result.h"
#include "common/units.h"

namespace clew::recorder {

// Called before each instruction of a program that is stepped. `thread` is
// stopped there; `tick` is the time, which each instruction that retires makes
// one more of. (An instruction that faults does not retire, nor one that is
// begun anew behind a signal: of a thread and a tick the last call counts.) Its
// error is that of the recording.
using BeforeInsn = std::function<Status(const TracedProcess& process,
                                        Tid thread, uint64_t tick)>;

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_BEFORE_INSN_H_
