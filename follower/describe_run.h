#ifndef CLEW_FOLLOWER_DESCRIBE_RUN_H_
#define CLEW_FOLLOWER_DESCRIBE_RUN_H_

#include <cstddef>
#include <optional>
#include <string>

#include "common/inputs.h"
#include "common/result.h"
#include "follower/process.h"

// What a run shows of the schedule that it was given, for people.

namespace clew::follower {

// Returns "thread 4711 at 0x401000 after 17 instructions: ...".
std::string Describe(const Contradiction& contradiction);

// Returns why `thread` is not where Run was to bring it: the contradiction, or
// that it "cannot go on". Returns nullopt if it is there.
std::optional<std::string> WhyNotReached(const Process& process, size_t thread,
                                         const Advance& advance);

// Returns what does not agree at the end of a schedule: a thread whose stream
// goes on, a store that still waits, or the failure. Returns nullopt if all
// agrees. Fails as Process::NextBlock and CheckFailure do.
[[nodiscard]] Result<std::optional<std::string>> CheckEnd(
    Process& process, const Failure& failure);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_DESCRIBE_RUN_H_
