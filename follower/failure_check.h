#ifndef CLEW_FOLLOWER_FAILURE_CHECK_H_
#define CLEW_FOLLOWER_FAILURE_CHECK_H_

#include <optional>

#include "common/inputs.h"
#include "common/result.h"
#include "follower/process.h"

namespace clew::follower {

// Compares the end of the run with the recorded failure: the faulting
// instruction brings about the same signal by the same access; of a signal that
// was sent, the place is the same. Returns what differs, or nullopt if nothing
// does; a failure that is not a signal is not compared. The failing instruction
// may have run afterwards, which is undone as a step is. Fails with
// kUnsupported if the machine does not know it, and as Tape::Input does.
// REQUIRES: the streams of all threads have ended.
[[nodiscard]] Result<std::optional<Contradiction>> CheckFailure(
    Process& process, const Failure& failure);

// Whether the last instruction of `thread`, which has run to its end, was INT3:
// then SIGTRAP is of that one, and rip behind it.
bool EndsInBreakpoint(const Process& process, size_t thread);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_FAILURE_CHECK_H_
