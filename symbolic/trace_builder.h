#ifndef CLEW_SYMBOLIC_TRACE_BUILDER_H_
#define CLEW_SYMBOLIC_TRACE_BUILDER_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_set>
#include <vector>

#include "common/result.h"
#include "common/schedule.h"
#include "constraints/expr.h"
#include "constraints/trace.h"
#include "follower/process.h"

namespace clew::symbolic {

struct TraceBuilderOptions {
  uint64_t accesses_max = 200'000;
  uint64_t clock_slack_ticks = 0;
  // BuildTrace fails with kLimit soon after it.
  std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::time_point::max();
  // An order to follow as far as it goes; borrowed. After it, and if it is
  // empty, the guess is followed.
  std::span<const ScheduleStep> along = {};
};

// A constraint trace, and which instruction each of its accesses belongs to.
struct BuiltTrace {
  constraints::ConstraintTrace trace;
  // By thread and access: instructions the thread retired before it.
  std::vector<std::vector<uint64_t>> insns;
  uint64_t insns_run = 0;
  // True if the run has never left the recorded paths: its order explains them,
  // and the assumptions below are true of one run that does.
  bool consistent = true;
  // Conditions that are not evidence: that addresses and values came out as in
  // this run, before it first left the recorded paths. What they came out as
  // after that is not asserted.
  std::vector<constraints::GroupId> assumed;
};

// Returns the accesses of the trace in the order of a schedule.
constraints::AccessOrder AccessOrderOf(const BuiltTrace& built,
                                       const follower::Tape& tape,
                                       std::span<const ScheduleStep> steps);

// Returns the trace without conditions that are not evidence, to measure what
// it says.
constraints::ConstraintTrace WithoutAssumptions(const BuiltTrace& built);

// Follows the recorded paths on the shadow machine, in the order of
// `options.along`, else of the guess, and writes down what a formula needs
// about the accesses to `words` (address / 8): each read is a variable, each
// write an expression over what its thread has read, each branch, address and
// system call argument that depends on one a condition. Where the machine's
// values leave the recorded path they are put back on it, and the condition
// says what was recorded; values and addresses that do not depend on `words`
// are those of this one run.
//
//     machine            shadow                     trace
//     a concrete run --> an expression beside  -->  accesses, conditions
//                        each value, nullptr
//                        where no variable is in it
//
// Invariant: as long as `consistent`, the expressions evaluate to the machine's
// values if each variable has the value that its read returned in this run.
// From the first departure on, only what was recorded is asserted, and what the
// run happened to compute is not.
//
// Worked example. x is 0. A: x = 1. B: r = x; if (r == 1) y = r + 1. B was
// recorded to take the branch, but in this run B comes first and reads 0:
//
//     A   write x: 1
//     B   read x: v0 (a new variable; the machine has 0)
//         condition v0 == 1: the machine would not branch, so it is put back on
//         the recorded path and the condition is turned round
//     B   write y: v0 + 1 (the machine stores 1)
//
// A formula of this finds that B reads x after A, though no run did so.
//
// A value that one thread stores and another loads must go through a traced
// word, or the second would have a variable of the first without an access that
// orders them. Such a word is a crossing; it is added to `words`, and the trace
// is built again until there is none.
//
// Futex wakes are not in the trace, so a witness of the formula may hold a
// thread that no call wakes: a witness has to be run. Unsat holds for the
// recorded addresses.
//
// `pool` is borrowed and must outlive the trace. Fails with kLimit if there are
// more than accesses_max accesses, the pool is full, the deadline has passed,
// or words keep crossing after several passes; and as Process::Run does.
[[nodiscard]] Result<BuiltTrace> BuildTrace(
    const follower::Process& start, const std::unordered_set<uint64_t>& words,
    constraints::ExprPool& pool, const TraceBuilderOptions& options);

}  // namespace clew::symbolic

#endif  // CLEW_SYMBOLIC_TRACE_BUILDER_H_
