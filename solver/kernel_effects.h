#ifndef CLEW_SOLVER_KERNEL_EFFECTS_H_
#define CLEW_SOLVER_KERNEL_EFFECTS_H_

#include <string>
#include <vector>

#include "common/result.h"
#include "follower/tape.h"
#include "solver/search/word_table.h"

namespace clew::solver {

// Returns the kernel's effects on memory, on behalf of a thread, that are not
// accesses in the word table, so that when they happened among the accesses of
// other threads is not searched over: one phrase for each thread and kind,
// where another thread touches the range that was not created afterwards (or,
// of discarded pages, where any thread does). A first mapping does not count:
// no thread can have accessed the range before it. Fails as Tape::Input does,
// with kUnsupported if inputs are missing.
[[nodiscard]] Result<std::vector<std::string>> UnorderedKernelEffects(
    follower::Tape& tape, const WordTable& words);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_KERNEL_EFFECTS_H_
