#ifndef CLEW_SOLVER_WHOLE_SEARCH_H_
#define CLEW_SOLVER_WHOLE_SEARCH_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "common/inputs.h"
#include "common/result.h"
#include "common/schedule.h"
#include "follower/process.h"
#include "solver/portfolio.h"
#include "solver/search/cuts.h"
#include "solver/search/edges.h"
#include "solver/search/word_table.h"

namespace clew::solver {

struct WholeSearchReport {
  PortfolioReport answer;           // of the last round
  std::vector<ScheduleStep> steps;  // for a witness
  uint64_t rounds = 0;
  uint64_t contested = 0;  // contested instructions of the last round
  uint64_t cuts = 0;       // and where its steps were cut besides
  // The last round refuted every choice and learned nothing that would make
  // another one differ.
  bool exhausted = false;
  // The edges of an order of accesses that Z3 found, which a run has yet to
  // try.
  std::optional<std::vector<OrderEdge>> edges;
};

// Runs the portfolio over the contested instructions on the machine, in rounds:
// what a round learns about which instructions are contested, and where steps
// have to be cut, holds for the next. The answer is kUnsat only if the search
// is exhausted and no access was dropped, so that no interleaving agrees with
// the evidence (up to collisions of 64-bit digests, and to what MachineExecutor
// does not see; solver/doubts.h). Recordings with few contested accesses are
// also put to Z3, and unsat is explained by evidence. `options.seconds` bounds
// all rounds together. Fails as RunPortfolio does, and with
// MachineExecutor::error().
[[nodiscard]] Result<WholeSearchReport> SearchWhole(
    const follower::Process& start, const Failure& failure,
    uint64_t clock_slack_ticks, WordTable& words, Cuts& cuts,
    PortfolioOptions options);

}  // namespace clew::solver

#endif  // CLEW_SOLVER_WHOLE_SEARCH_H_
