#ifndef CLEW_RECORDER_NATIVE_CHILD_TAKER_H_
#define CLEW_RECORDER_NATIVE_CHILD_TAKER_H_

#include <functional>

#include "common/os/ptrace.h"
#include "common/result.h"

namespace clew::recorder {

// Is given a process that the program has made: its thread, which is traced by
// `process` and stopped behind the call that made it, with the registers and
// signals that the program means it to have. Traces it no longer.
using ChildTaker = std::function<Status(TracedProcess& process, Tid child)>;

}  // namespace clew::recorder

#endif  // CLEW_RECORDER_NATIVE_CHILD_TAKER_H_
