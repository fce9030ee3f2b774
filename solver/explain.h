#ifndef CLEW_SOLVER_EXPLAIN_H_
#define CLEW_SOLVER_EXPLAIN_H_

#include <optional>
#include <vector>

#include "common/os/deadline.h"
#include "constraints/trace.h"
#include "constraints/verdict.h"
#include "solver/search/search_path.h"

namespace clew::solver {

struct DecideOptions {
  uint64_t memory_bytes_max = uint64_t{1} << 30;
  bool use_z3 = true;
};

// Decides whether the trace has a witness: by search, then by Z3. Returns
// kUnknown if the time is over or neither can tell. REQUIRES: the trace is
// valid.
constraints::Verdict Decide(const constraints::ConstraintTrace& trace,
                            const DecideOptions& options,
                            const Deadline& deadline);

// Returns the evidence groups that conflict: a set that is contradictory by
// itself and from which, as far as the time allowed to find out, none can be
// left away. Returns nullopt if the whole trace was not found contradictory in
// time. Decides once for the whole trace and once for each group that it uses.
std::optional<std::vector<constraints::GroupId>> ExplainUnsat(
    const constraints::ConstraintTrace& trace, const DecideOptions& options,
    const Deadline& deadline);

// Returns the trace without the evidence of one group.
constraints::ConstraintTrace WithoutGroup(
    const constraints::ConstraintTrace& trace, constraints::GroupId group);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_EXPLAIN_H_
