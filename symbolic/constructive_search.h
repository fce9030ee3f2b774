#ifndef CLEW_SYMBOLIC_CONSTRUCTIVE_SEARCH_H_
#define CLEW_SYMBOLIC_CONSTRUCTIVE_SEARCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/inputs.h"
#include "common/result.h"
#include "common/schedule.h"
#include "process/process.h"
#include "solver/search.h"
#include "symbolic/word_table.h"

namespace clew::symbolic {

struct ConstructiveReport {
  solver::Verdict verdict = solver::Verdict::kUnknown;
  std::vector<ScheduleStep> steps;  // kWitness
  solver::SearchStats stats;        // over all rounds
  uint64_t rounds = 0;
  uint64_t contested = 0;  // contested instructions of the last round
  std::string why;         // kUnknown
  // What the deepest path met: for kUnsat, evidence that nothing agrees with.
  std::string deepest_contradiction;
};

// Depth-first search over the contested instructions on the machine, in rounds:
// what a round learns about which instructions are contested holds for the
// next. kUnsat: a round refuted every choice and learned nothing new, so no
// interleaving agrees with the evidence (up to collisions of 64-bit digests).
[[nodiscard]] Result<ConstructiveReport> ConstructiveSearch(
    const process::Process& start, const Failure& failure,
    uint64_t clock_slack_ticks, WordTable& words, uint64_t seed,
    double seconds);

}  // namespace clew::symbolic

#endif  // CLEW_SYMBOLIC_CONSTRUCTIVE_SEARCH_H_
