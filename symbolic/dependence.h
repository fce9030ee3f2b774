#ifndef CLEW_SYMBOLIC_DEPENDENCE_H_
#define CLEW_SYMBOLIC_DEPENDENCE_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <unordered_set>

#include "common/result.h"
#include "follower/guessed_turns.h"
#include "follower/process.h"

namespace clew::symbolic {

// A step that differs from what was recorded: the branch that was the last of
// `insn` instructions of the thread, or the system call that was.
struct DepartureStep {
  size_t thread = 0;
  uint64_t insn = 0;
};

struct DependenceOptions {
  uint64_t insns_max = ~uint64_t{0};  // of all threads
  std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::time_point::max();
};

// Returns true if the step departs from the recording whatever the order of
// accesses to `words` (address / 8) is: no value that was read there stands
// behind its branch or the argument that differs. False: one does, or it is not
// known.
//
// `from` is a process, with what its turns are, up to which there was one order
// only. It is run on the shadow machine along the recorded paths, by force,
// as far as anything may come before the step, which holds its thread up:
//
//     read of a word of `words`   a new variable
//     other reads                 what the thread, or whoever was certainly
//                                 before it, stored there
//
// Why that is enough: suppose an order agrees with the recording up to the
// step. Its threads go along the same paths. A value without a variable is the
// same in it as here, by induction along that order: it was computed from such
// values, or loaded from a word where all stores are in an order that is
// certain. That takes that all stores of that order are known, so the answer is
// false where one has an address with a variable in it, where the shadow
// machine gave a variable up, where a part of the path was not run, and where a
// signal was handled. What calls return, write and are given is as recorded.
//
// REQUIRES: `words` are all whose accesses by different threads conflict and
// may come in either order, up to the step. Fails as Process::Run does.
[[nodiscard]] Result<bool> DepartsInEveryOrder(
    const follower::Process& from, const follower::GuessedTurns& turns,
    const DepartureStep& step, const std::unordered_set<uint64_t>& words,
    const DependenceOptions& options);

}  // namespace clew::symbolic

#endif  // CLEW_SYMBOLIC_DEPENDENCE_H_
