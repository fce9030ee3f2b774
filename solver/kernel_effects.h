#ifndef CLEW_SOLVER_KERNEL_EFFECTS_H_
#define CLEW_SOLVER_KERNEL_EFFECTS_H_

#include <string>
#include <vector>

#include "common/result.h"
#include "follower/tape.h"
#include "solver/search/word_table.h"

namespace clew::solver {

// What the kernel did to memory on behalf of a thread, that is no access in the
// word table, so that when it happened among the accesses of other threads is
// not searched over: one phrase for each thread and kind, where another thread
// touches the range that was not created afterwards (or, of discarded pages,
// where any thread does). A first mapping is none: nobody can have accessed the
// range before it. kUnsupported: inputs are missing.
[[nodiscard]] Result<std::vector<std::string>> UnorderedKernelEffects(
    follower::Tape& tape, const WordTable& words);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_KERNEL_EFFECTS_H_
