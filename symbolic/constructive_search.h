#ifndef CLEW_SYMBOLIC_CONSTRUCTIVE_SEARCH_H_
#define CLEW_SYMBOLIC_CONSTRUCTIVE_SEARCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/inputs.h"
#include "common/result.h"
#include "common/schedule.h"
#include "process/process.h"
#include "solver/solve.h"
#include "symbolic/edges.h"
#include "symbolic/word_table.h"

namespace clew::symbolic {

struct ConstructiveReport {
  solver::SolveReport answer;       // of the last round
  std::vector<ScheduleStep> steps;  // for a witness
  uint64_t rounds = 0;
  uint64_t contested = 0;  // contested instructions of the last round
  // What an order of accesses that Z3 found says about order; to be tried.
  std::optional<std::vector<OrderEdge>> edges;
};

// The solver's portfolio over the contested instructions on the machine, in
// rounds: what a round learns about which instructions are contested holds for
// the next. Unsat: a round refuted every choice and learned nothing new, so no
// interleaving agrees with the evidence (up to collisions of 64-bit digests,
// and as long as no thread unmaps what another uses). Recordings with few
// contested accesses are also put to Z3, and unsat is explained by evidence.
// `options.seconds` bounds all rounds together.
[[nodiscard]] Result<ConstructiveReport> ConstructiveSearch(
    const process::Process& start, const Failure& failure,
    uint64_t clock_slack_ticks, WordTable& words, solver::SolveOptions options);

}  // namespace clew::symbolic

#endif  // CLEW_SYMBOLIC_CONSTRUCTIVE_SEARCH_H_
