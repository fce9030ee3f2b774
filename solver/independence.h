#ifndef CLEW_SOLVER_INDEPENDENCE_H_
#define CLEW_SOLVER_INDEPENDENCE_H_

#include <cstdint>

#include "common/os/deadline.h"
#include "common/result.h"
#include "follower/process.h"
#include "follower/recording.h"

namespace clew::solver {

// Returns true if the contradiction comes in every order, under every memory
// model, so that nothing is left to be searched: its thread takes a branch or
// makes a system call that was not recorded, nothing contested stands behind
// that (symbolic/dependence.h), and nothing stands against the verdict
// (solver/doubts.h). False says nothing.
//
// Runs the recording along its paths as far as anything may come before the
// contradiction, four times, once of them on the shadow machine, but for the
// part with one thread; false if that is more than `insns_max` instructions, or
// the deadline passes. Fails as Process::Run does.
[[nodiscard]] Result<bool> ComesInEveryOrder(
    const follower::Recording& recording, const follower::Process& start,
    const follower::Contradiction& contradiction, uint64_t insns_max,
    const Deadline& deadline);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_INDEPENDENCE_H_
