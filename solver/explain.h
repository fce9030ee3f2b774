#ifndef CLEW_SOLVER_EXPLAIN_H_
#define CLEW_SOLVER_EXPLAIN_H_

#include <optional>
#include <vector>

#include "common/deadline.h"
#include "constraints/trace.h"
#include "constraints/verdict.h"
#include "solver/search/search_path.h"

namespace clew::solver {

struct DecideOptions {
  uint64_t memory_bytes_max = uint64_t{1} << 30;
  bool use_z3 = true;
};

// Whether the trace has a witness: by search, then by Z3; kUnknown when the
// time is over. REQUIRES: a valid trace.
constraints::Verdict Decide(const constraints::ConstraintTrace& trace,
                            const DecideOptions& options,
                            const Deadline& deadline);

// The evidence groups that conflict: a set that is contradictory by itself and
// from which, as far as the time allowed to find out, none can be left away.
// nullopt if the whole trace was not found contradictory in time. Decides once
// for each group.
std::optional<std::vector<constraints::GroupId>> ExplainUnsat(
    const constraints::ConstraintTrace& trace, const DecideOptions& options,
    const Deadline& deadline);

// The trace without the evidence of one group.
constraints::ConstraintTrace WithoutGroup(
    const constraints::ConstraintTrace& trace, constraints::GroupId group);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_EXPLAIN_H_
