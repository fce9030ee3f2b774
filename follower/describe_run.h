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

// "thread 4711 at 0x401000 after 17 instructions: ...".
std::string Describe(const Contradiction& contradiction);

// Why `thread` is not where Run was to bring it: the contradiction, or that it
// "cannot go on". nullopt: it is.
std::optional<std::string> WhyNotReached(const Process& process, size_t thread,
                                         const Advance& advance);

// What does not agree at the end of a schedule: a thread whose stream goes on,
// or the failure. nullopt: all does.
[[nodiscard]] Result<std::optional<std::string>> CheckEnd(
    Process& process, const Failure& failure);

}  // namespace clew::follower

#endif  // CLEW_FOLLOWER_DESCRIBE_RUN_H_
