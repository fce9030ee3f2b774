#ifndef CLEW_SOLVER_PORTFOLIO_H_
#define CLEW_SOLVER_PORTFOLIO_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/progress.h"
#include "common/result.h"
#include "constraints/executor.h"
#include "constraints/locations.h"
#include "constraints/trace.h"
#include "constraints/verdict.h"
#include "solver/search/search_path.h"

// The portfolio: all engines, in growing slices of time.

namespace clew::solver {

struct PortfolioOptions {
  double seconds = 60;
  uint64_t nodes_max = 500'000'000;  // over all engines
  uint64_t memory_bytes_max = uint64_t{1} << 30;
  uint64_t seed = 1;
  bool use_search = true;
  bool use_repair = true;
  bool use_beam = true;
  bool use_z3 = true;
  // Z3 is asked only about traces with at most this many accesses.
  uint64_t z3_accesses_max = 20'000;
  // Whatever the order, the program makes the accesses of the trace. If not
  // (addresses depend on reads), Z3's unsat does not hold for the program, and
  // the trace explains nothing.
  bool trace_is_complete = false;
  // How long to look for the groups that conflict, once unsat is known.
  double explain_seconds = 10;
  double first_slice_seconds = 0.25;  // of each engine; doubled every round
  ProgressSink* progress = nullptr;   // borrowed; nodes against nodes_max
};

// One run of one engine, for the report.
struct EngineRun {
  std::string engine;
  constraints::Verdict verdict = constraints::Verdict::kUnknown;
  std::string why;
  SearchStats stats;
  uint64_t clauses = 0;
};

struct PortfolioReport {
  constraints::Verdict verdict = constraints::Verdict::kUnknown;
  std::string engine;  // that gave the answer
  // For kWitness: the steps that the executor has taken (it stands at their
  // end), or, from Z3, an order of the trace's accesses and values of its
  // unknowns; the checker has accepted the latter.
  constraints::StepOrder steps;
  std::optional<constraints::AccessOrder> accesses;
  std::vector<std::pair<constraints::VarId, uint64_t>> unknowns;
  // For kUnsat: the evidence that conflicts; empty if it was not found out.
  std::vector<constraints::GroupId> conflicting;
  std::vector<std::string> conflicting_labels;
  std::string why;  // for kUnknown
  // Present if there is a complete trace.
  std::optional<constraints::Ambiguity> ambiguity;
  std::vector<EngineRun> runs;
  SearchStats stats;
  uint64_t clauses = 0;
  double seconds = 0;
  std::string deepest_contradiction;
};

// Called at most once, when Z3, the ambiguity or an explanation needs the
// trace. For Z3, its error or an invalid trace ends Z3 and is told in
// PortfolioReport::runs, if other engines are allowed. The expressions in it
// must live until RunPortfolio returns.
using TraceProvider = std::function<Result<constraints::ConstraintTrace>()>;

// Finds an order of steps that the executor accepts. If `provider` is empty, it
// does without Z3, ambiguity and explanation. The executor must stand at its
// start; without a witness it is left there.
//
// It promises: a witness was executed to its end without contradiction; unsat
// comes from a search that refuted every choice (up to collisions of 64-bit
// digests) or, for a complete trace, from Z3; all else is unknown. Fails if the
// question could not be put: if a complete trace cannot be provided or is
// invalid, and Z3 has not asked for it before; or if Z3 is the only engine that
// is allowed, and fails.
[[nodiscard]] Result<PortfolioReport> RunPortfolio(
    constraints::Executor& executor, const TraceProvider& provider,
    const PortfolioOptions& options);

// Does the same for a trace alone; a witness has `accesses`, accepted by the
// checker. A trace with unknowns is given to Z3 alone. Fails with
// kInvalidArgument if the trace is not valid, and as RunPortfolio does.
[[nodiscard]] Result<PortfolioReport> SolveTrace(
    const constraints::ConstraintTrace& trace, const PortfolioOptions& options);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_PORTFOLIO_H_
